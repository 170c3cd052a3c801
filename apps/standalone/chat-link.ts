import { Spool, SpoolError } from '#client';
import type { Logger } from '#platform';
import type { Quickstart } from './quickstart.ts';

const VERBS = ['read', 'send', 'decide', 'upload', 'manage'] as const;
const LINK_SECONDS = 3_600;

/** Why the service refuses the link after an operator has changed something. */
const EXPECTED: ReadonlySet<string> = new Set([
  ...['token_invalid', 'agent_forbidden', 'agent_not_found'],
  ...['agent_not_published', 'api_access_off', 'no_live_version'],
]);

type LinkParts = Pick<Quickstart, 'BASE_URL' | 'SERVICE_TOKEN' | 'GUIDE_AGENT_ID'>;

/**
 * Returns the address of a chat with the guide that needs no sign-in. Without a token for it, returns the address of the chat page.
 * Logs why, unless the service token is revoked or the guide is not in use.
 */
export async function chatLink(quickstart: LinkParts, logger: Pick<Logger, 'warn'>): Promise<string> {
  const { BASE_URL, SERVICE_TOKEN, GUIDE_AGENT_ID: agentId } = quickstart;
  const page = new URL('/chat', BASE_URL).href;
  const rights = { userId: 'me', agentId, verbs: [...VERBS], expiresInSeconds: LINK_SECONDS };
  try {
    const { token } = await new Spool({ baseUrl: BASE_URL, token: SERVICE_TOKEN }).browserTokens.create(rights);
    return `${page}/${agentId}#token=${token}`;
  } catch (error) {
    const reason = error instanceof SpoolError ? error.reason : undefined;
    if (!EXPECTED.has(reason ?? '')) logger.warn({ err: error, reason }, 'chat link not created');
    return page;
  }
}
