import { useEffect } from 'react';
import { useQuery, useQueryClient, type QueryClient, type UseQueryResult } from '@tanstack/react-query';
import { whenSessionEnds } from './client.ts';
import { readSession, signIn, signOut, type Session } from './session.ts';

const KEY = ['session'];

/** How often the session is read. A page must close within 5 s after its token is revoked, and a pod needs about a second to know. */
const ASK_EVERY_MS = 2_500;

/**
 * Returns the session. Its data is null if nobody is signed in, and as soon as any call reports that the session has ended. Polls the
 * service, because not every page sends requests. So its error also shows when the service is unavailable.
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
  // The next person on this device must not see the answers of the one before.
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

/** Removes all cached answers, except the session. */
export function forgetAnswers(queries: QueryClient): void {
  queries.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== KEY[0] });
}

/** Sets the session. Cancels a request in flight first, because its answer would restore the session before. */
async function setSession(queries: QueryClient, session: Session | null): Promise<void> {
  await queries.cancelQueries({ queryKey: KEY });
  queries.setQueryData(KEY, session);
}
