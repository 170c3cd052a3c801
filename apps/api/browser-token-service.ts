import type { BrowserTokens } from '#access';
import { BROWSER_TOKEN_SECONDS, type BrowserTokenAnswer, type operations } from '#contract';
import type { AccessGuard } from './access-guard.ts';
import type { ApiRequest } from './http/caller.ts';
import { ApiError, notFound } from './http/http-errors.ts';

/** Creates browser tokens (docs/api/browsers.md). */
export class BrowserTokenService {
  constructor(
    private readonly access: AccessGuard,
    private readonly tokens: BrowserTokens,
  ) {}

  /** Throws ApiError for an Agent or a Thread that the service token or the user cannot use. */
  async create({ caller, input }: ApiRequest<typeof operations.createBrowserToken>): Promise<BrowserTokenAnswer> {
    const { userId, threadId = null, verbs, expiresInSeconds = BROWSER_TOKEN_SECONDS, origins = null } = input.body;
    let { agentId = null } = input.body;
    if (caller.kind !== 'service')
      throw new ApiError('service_token_required', 'Only service tokens create browser tokens.');
    if (agentId !== null) await this.access.findUsableAgent(caller, agentId);
    if (threadId !== null) {
      const { thread } = await this.access.findVisibleThread(caller, threadId);
      const isIncluded = thread.user_id === userId && (agentId === null || thread.agent_id === agentId);
      if (!isIncluded) throw notFound('Thread');
      agentId = thread.agent_id;
    }
    if (!this.tokens.isOn)
      throw new ApiError('browser_tokens_off', 'This installation has no keys for browser tokens.');
    const claims = { parentId: caller.tokenId, userId, agentId, threadId, verbs: [...new Set(verbs)], origins };
    return this.tokens.make(claims, expiresInSeconds);
  }
}
