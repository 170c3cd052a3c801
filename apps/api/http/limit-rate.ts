import type { FastifyReply, FastifyRequest } from 'fastify';
import ipaddr from 'ipaddr.js';
import type { Admission, Caller, RateLimiter } from '#access';
import { rateLimited } from './http-errors.ts';

/** The fields of a caller or session that its requests are counted by. */
type Counted = Pick<Caller, 'tokenId' | 'limits'>;

/**
 * Counts one request: by token, or by address if there is no valid token. Counts it by address before each look-up of a
 * credential that this process does not remember, and returns these counts if it is valid (docs/adr/0024). Sets the RateLimit
 * headers. Throws ApiError.
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
    await limitRate(this.limiter, this.address, undefined, this.reply);
  }

  async add(who: Counted | null): Promise<void> {
    if (who !== null) {
      const returned = Array.from({ length: this.lookUps }, () => this.limiter.giveBack(this.address));
      const { tokenId, limits } = who;
      await Promise.all([limitRate(this.limiter, tokenId, limits.requestsPerMinute, this.reply), ...returned]);
    } else if (this.lookUps === 0) await this.beforeLookUp();
  }
}

/** Counts one request. Throws ApiError beyond the limit `ofToken`; without it, beyond the limit of addresses. */
async function limitRate(
  limiter: RateLimiter,
  key: string,
  ofToken: number | undefined,
  reply: FastifyReply,
): Promise<void> {
  const { allowed, limit, remaining, resetSeconds } = await limiter.consume(key, ofToken);
  void reply.headers({
    'RateLimit-Limit': limit,
    'RateLimit-Remaining': remaining,
    'RateLimit-Reset': resetSeconds,
  });
  if (allowed) return;
  const whose = ofToken === undefined ? 'Requests without a known valid token' : 'Requests of this token';
  const message = `${whose} are limited to ${limit} a minute; wait for Retry-After.`;
  throw rateLimited('too_many_requests', message, resetSeconds);
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
