import { Spool } from '#client';
import { post } from '../api/client.ts';

/** A client with the token of one user, and the Agent that the user chats with. */
export interface Access {
  client: Spool;
  agentId: string;
  /** Returns the `userId` of new Threads. */
  userId: () => Promise<string>;
}

/** A browser token from a link, for people without a session. */
export interface Link {
  token: string;
  userId: string;
  /** The only Agent that the token may use; null if the address names the Agent. */
  agentId: string | null;
  /** Whether the token is still in the address, and the tab does not keep it yet. */
  isNew: boolean;
}

const baseUrl = `${window.location.origin}/api/v1`;

/** Returns the access of the signed-in operator. The service creates each chat token for the session. */
export function operatorAccess(agentId: string): Access {
  const create = () => post('/chat-tokens', { body: { agentId } });
  let newest: ReturnType<typeof create> | undefined;
  const getToken = () => {
    const created = create();
    newest = created;
    created.catch(() => {
      if (newest === created) newest = undefined;
    });
    return created;
  };
  return {
    client: new Spool({ baseUrl, getToken }),
    agentId,
    userId: async () => (await (newest ?? getToken())).userId,
  };
}

export function linkAccess({ token, userId }: Link, agentId: string): Access {
  return { client: new Spool({ baseUrl, getToken: () => token }), agentId, userId: async () => userId };
}

const KEPT_AS = 'spool-chat-token';

/** Returns the link that opened this tab, or the one that the tab keeps; null for operators. */
export function readLink(): Link | null {
  const given = new URLSearchParams(window.location.hash.slice(1)).get('token');
  const token = given ?? sessionStorage.getItem(KEPT_AS);
  return token === null ? null : { token, ...readClaims(token), isNew: given !== null };
}

/** Keeps the link for this tab. Removes the token from the address, so that nobody copies it and the history does not keep it. */
export function keepLink({ token }: Link): void {
  sessionStorage.setItem(KEPT_AS, token);
  removeFragment();
}

export function forgetLink(): void {
  sessionStorage.removeItem(KEPT_AS);
  removeFragment();
}

const removeFragment = (): void => window.history.replaceState(null, '', window.location.pathname);

/** Reads the claims without verifying them, because the service verifies every request. */
function readClaims(token: string): Pick<Link, 'userId' | 'agentId'> {
  try {
    const payload = (token.split('.')[1] ?? '').replaceAll('-', '+').replaceAll('_', '/');
    const bytes = Uint8Array.from(atob(payload), (character) => character.charCodeAt(0));
    const { sub, agent } = JSON.parse(new TextDecoder().decode(bytes)) as { sub: string; agent?: string };
    return { userId: sub, agentId: agent ?? null };
  } catch {
    // The first request fails, and the page shows its error.
    return { userId: '', agentId: null };
  }
}
