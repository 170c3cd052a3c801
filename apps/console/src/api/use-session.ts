import { useEffect } from 'react';
import { useQuery, useQueryClient, type QueryClient, type UseQueryResult } from '@tanstack/react-query';
import { whenSessionEnds } from './client.ts';
import { readSession, signIn, signOut, type Session } from './session.ts';

const KEY = ['session'];

/** Every pod knows within a second or so that a token was revoked, and its operator looks at nothing 5 s after. */
const ASK_EVERY_MS = 2_500;

/**
 * Who is signed in: null nobody, also from when any call has been told that the session is over. It is asked for all the
 * time, as not every page reads by itself; so it also tells when the service is away, and when it is back.
 */
export function useSession(): UseQueryResult<Session | null> {
  const queries = useQueryClient();
  useEffect(() => whenSessionEnds(() => void setSession(queries, null)), [queries]);
  return useQuery({
    queryKey: KEY,
    queryFn: readSession,
    staleTime: Infinity,
    refetchInterval: ({ state }) => (state.data === null ? false : ASK_EVERY_MS),
  });
}

export function useSigning(): { signIn: (token: string) => Promise<void>; signOut: () => Promise<void> } {
  const queries = useQueryClient();
  // What was read is not for whoever sits here next.
  const become = async (session: Session | null): Promise<void> => {
    await setSession(queries, session);
    forgetAnswers(queries);
  };
  return {
    signIn: async (token) => become(await signIn(token)),
    signOut: async () => {
      await signOut();
      await become(null);
    },
  };
}

/** Removes all that was read, but for who is signed in. */
export function forgetAnswers(queries: QueryClient): void {
  queries.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== KEY[0] });
}

/** An answer that is still under way tells of the session before: it would bring that back. */
async function setSession(queries: QueryClient, session: Session | null): Promise<void> {
  await queries.cancelQueries({ queryKey: KEY });
  queries.setQueryData(KEY, session);
}
