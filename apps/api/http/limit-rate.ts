import type { FastifyReply, FastifyRequest } from 'fastify';
import ipaddr from 'ipaddr.js';
import type { Admission, BrowserCaller, Caller, RateLimiter } from '#access';
import { rateLimited } from './http-errors.ts';

/** The fields of a caller or session that its requests are counted by. */
type Counted = Pick<Caller, 'tokenId' | 'limits'> & Partial<Pick<BrowserCaller, 'userKey' | 'userLimits'>>;

/**
 * Counts one request: by token (by user too if it is a browser token), or by address if there is no valid token. Counts it by
 * address before each look-up of a credential that this process does not remember, and returns these counts if it is valid
 * (docs/adr/0024). Sets the RateLimit headers. Throws ApiError.
 */
export class RequestCount implements Admission {
  private readonly address: string;
  private lookUps = 0;

  constructor(
    private readonly limiter: RateLimiter,
    request: FastifyRequest,
    private readonly reply: FastifyReply,
  ) {
    this.address = `address ${networkOf(request.ip)}`;
  }

  async beforeLookUp(): Promise<void> {
    this.lookUps++;
    await this.consume(this.address, undefined, 'Requests without a known valid token');
  }

  async add(who: Counted | null): Promise<void> {
    if (who !== null) {
      const returned = Array.from({ length: this.lookUps }, () => this.limiter.giveBack(this.address));
      await Promise.all([this.addToken(who), ...returned]);
    } else if (this.lookUps === 0) await this.beforeLookUp();
  }

  /** Counts a user first, so that requests beyond the user's limit do not use up the limit of the service token. */
  private async addToken({ tokenId, limits, userKey, userLimits }: Counted): Promise<void> {
    const ofUser = userKey !== undefined && userLimits !== undefined;
    if (ofUser) await this.consume(userKey, userLimits.requestsPerMinute, 'Requests of this user');
    await this.consume(tokenId, limits.requestsPerMinute, 'Requests of this token', ofUser ? 'a refusal' : 'always');
  }

  /** Counts one request. Throws ApiError beyond the limit `ofToken`; without it, beyond the limit of addresses. */
  private async consume(
    key: string,
    ofToken: number | undefined,
    whose: string,
    shownBy: 'always' | 'a refusal' = 'always',
  ): Promise<void> {
    const { allowed, limit, remaining, resetSeconds } = await this.limiter.consume(key, ofToken);
    if (!allowed || shownBy === 'always') {
      void this.reply.headers({
        'RateLimit-Limit': limit,
        'RateLimit-Remaining': remaining,
        'RateLimit-Reset': resetSeconds,
      });
    }
    if (allowed) return;
    const message = `${whose} are limited to ${limit} a minute; wait for Retry-After.`;
    throw rateLimited('too_many_requests', message, resetSeconds);
  }
}

/**
 * Returns the network that requests of an address are counted by. Rounds IPv6 addresses to /64, because one customer usually
 * holds a whole /64.
 */
export function networkOf(address: string): string {
  if (!ipaddr.IPv6.isValid(address) || address.includes('.')) return address;
  const { parts } = ipaddr.IPv6.parse(address);
  return parts
    .slice(0, 4)
    .map((part) => part.toString(16))
    .join(':');
}
