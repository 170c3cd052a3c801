import type { FastifyReply, FastifyRequest } from 'fastify';
import ipaddr from 'ipaddr.js';
import type { BeforeLookUp, Caller, RateLimiter } from '#access';
import { rateLimited } from './http-errors.ts';

/** The fields of a caller or session that its requests are counted by. */
type Counted = Pick<Caller, 'tokenId' | 'limits'>;

/**
 * Finds who sends the request, and counts it by token. Counts it by address if there is no valid token, and before each look-up
 * of a token that this process does not remember. Returns the latter count if the token is valid (docs/adr/0024). Tells in
 * the headers how many are left. Throws ApiError, and what `find` throws.
 */
export async function findLimited<Who extends Counted>(
  limiter: RateLimiter,
  request: FastifyRequest,
  reply: FastifyReply,
  find: (beforeLookUp: BeforeLookUp) => Promise<Who | null>,
): Promise<Who | null> {
  const address = `address ${networkOf(request.ip)}`;
  let lookUps = 0;
  const countAddress = async (): Promise<void> => {
    lookUps++;
    await limitRate(limiter, address, undefined, reply);
  };
  const who = await find(countAddress);
  if (who !== null) {
    const returned = Array.from({ length: lookUps }, () => limiter.giveBack(address));
    await Promise.all([limitRate(limiter, who.tokenId, who.limits.requestsPerMinute, reply), ...returned]);
  } else if (lookUps === 0) await countAddress();
  return who;
}

/** Counts one request. Throws ApiError beyond the limit; without `limit`, beyond that of addresses. */
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

/** Returns the network that requests of an address are counted by. Rounds IPv6 addresses to /64, because one customer usually holds a whole /64. */
export function networkOf(address: string): string {
  if (!ipaddr.IPv6.isValid(address) || address.includes('.')) return address;
  const { parts } = ipaddr.IPv6.parse(address);
  return parts
    .slice(0, 4)
    .map((part) => part.toString(16))
    .join(':');
}
