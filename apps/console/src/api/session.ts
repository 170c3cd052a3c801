import { CallError, checked, reach } from './client.ts';
import { keepPageKey } from './page-key.ts';

/** Who is signed in. The cookie itself is out of reach of scripts. */
export interface Session {
  operator: { tokenId: string; name: string };
  expiresAt: string;
}

const PATH = '/console/session';

/** Null where nobody is. Throws CallError where the service cannot be reached. */
export async function readSession(): Promise<Session | null> {
  const response = await reach(PATH, 'GET');
  if (response.status === 204) return null;
  return (await (await checked(response)).json()) as Session;
}

/** Exchanges an operator token for a session. Throws CallError: 401 wrong token, 429 too many tries. */
export async function signIn(token: string): Promise<Session> {
  const response = await checked(await reach(PATH, 'POST', { token }));
  const { pageKey, ...session } = (await response.json()) as Session & { pageKey?: string };
  // A pod of the release before has answered. The other pods do not accept its sessions.
  if (pageKey === undefined)
    throw new CallError(0, 'unavailable', 'An upgrade is under way. Sign in again in a minute.');
  keepPageKey(pageKey);
  return session;
}

export async function signOut(): Promise<void> {
  await checked(await reach(PATH, 'DELETE'));
  keepPageKey(null);
}
