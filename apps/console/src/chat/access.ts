import { Spool } from '#client';
import { post } from '../api/client.ts';

/** Whom the page talks as, and with which Agent. */
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
  /** The only Agent that the token may use; null: the address names it. */
  agentId: string | null;
}

const baseUrl = `${window.location.origin}/api/v1`;

/** The access of the signed-in operator. The service creates each token behind the session. */
export function operatorAccess(agentId: string): Access {
  const create = () => post('/chat-tokens', { body: { agentId } });
  let newest: ReturnType<typeof create> | undefined;
  const getToken = () => (newest = create());
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

/**
 * Returns the link that opened this tab; null for operators. Removes the token from the address, so that it is neither copied nor
 * kept in the history.
 */
export function takeLink(): Link | null {
  const given = new URLSearchParams(window.location.hash.slice(1)).get('token');
  if (given !== null) {
    sessionStorage.setItem(KEPT_AS, given);
    window.history.replaceState(null, '', window.location.pathname);
  }
  const token = given ?? sessionStorage.getItem(KEPT_AS);
  return token === null ? null : parseLink(token);
}

export const forgetLink = (): void => sessionStorage.removeItem(KEPT_AS);

/** Reads the claims without verifying them: the service does. */
function parseLink(token: string): Link {
  try {
    const payload = (token.split('.')[1] ?? '').replaceAll('-', '+').replaceAll('_', '/');
    const bytes = Uint8Array.from(atob(payload), (character) => character.charCodeAt(0));
    const { sub, agent } = JSON.parse(new TextDecoder().decode(bytes)) as { sub: string; agent?: string };
    return { token, userId: sub, agentId: agent ?? null };
  } catch {
    // The service says what is wrong with it.
    return { token, userId: '', agentId: null };
  }
}
