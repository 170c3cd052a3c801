import type { Pool } from 'pg';
import { AccessRefused, AccessStore, type LimitSettings, type MintedToken } from '#access';
import type { AdminInput, AdminOperations, TokenRecord } from '#contract';
import { audited, lockRow } from './audit.ts';
import type { SomeHandlers } from './handlers.ts';
import { findOrganization, findPerson } from './people-handlers.ts';
import { AdminReader, pageOf } from './reader.ts';
import { AdminRefused } from './refused.ts';
import { aboutNewToken, aboutToken, TokenReader } from './token-reader.ts';

export interface TokenHandlerParts {
  pool: Pool;
  /** Contains the default limits. */
  config: LimitSettings;
}

type Body<N extends keyof AdminOperations> = AdminInput<AdminOperations[N]>['body'];

/** Handles tokens. Only the responses of `mintToken` and `rotateToken` contain secrets. */
export function tokenHandlers({
  pool,
  config,
}: TokenHandlerParts): SomeHandlers<'mintToken' | 'listTokens' | 'getToken' | 'identifyToken'> {
  const reader = new TokenReader(pool, config);
  return {
    mintToken: ({ body }, { actor }) =>
      audited(pool, actor, async (client, note) => {
        const inside = new AdminReader(client);
        const expiry = toDate(body.expiresAt);
        if (expiry && expiry.getTime() <= Date.now()) {
          throw new AdminRefused('invalid_request', 'The expiry (expiresAt) is in the past; use a time in the future.');
        }
        if (body.kind === 'person') await findPerson(inside, body.personId);
        if (body.kind === 'service') await findOrganization(inside, body.organizationId);
        const { id, token: secret } = await orRefuse(mint(new AccessStore(client), body));
        const token = await new TokenReader(client, config).find(id);
        note(aboutNewToken(token));
        return { token, secret };
      }),

    listTokens: async ({ query: { limit, ...wanted } }) => {
      const { page, nextCursor } = pageOf(await reader.list({ ...wanted, limit: limit + 1 }), limit);
      return { tokens: page, nextCursor };
    },

    getToken: async ({ params: { tokenId } }) => ({ token: await reader.find(tokenId) }),

    identifyToken: async ({ body: { sha256 } }) => {
      const [token] = await reader.list({ secretHash: Buffer.from(sha256, 'hex') });
      if (token === undefined) throw new AdminRefused('not_found', 'No token has this secret.');
      return { token };
    },
  };
}

/** Handles changes of existing tokens. */
export function tokenChangeHandlers({
  pool,
  config,
}: TokenHandlerParts): SomeHandlers<'updateToken' | 'rotateToken' | 'revokeToken'> {
  return {
    updateToken: ({ params: { tokenId }, body }, { actor }) =>
      audited(pool, actor, async (client, note) => {
        const inside = new TokenReader(client, config);
        await lockRow(client, 'tokens', tokenId);
        const before = await inside.find(tokenId);
        if (before.status === 'revoked') throw isRevoked();
        if (body.allowAttribution === true && before.kind !== 'service') {
          throw new AdminRefused(
            'invalid_request',
            'Only a service token can create Threads on behalf of people (allowAttribution).',
          );
        }
        if (typeof body.maxStreams === 'number' && before.kind === 'operator') {
          throw new AdminRefused(
            'invalid_request',
            'An operator token cannot open streams; remove the limit of streams (maxStreams).',
          );
        }
        const wanted = { ...body, expiresAt: toDate(body.expiresAt) };
        await orRefuse(new AccessStore(client).updateToken(tokenId, wanted));
        const after = await inside.find(tokenId);
        const details = differences(before, after);
        if (Object.keys(details).length > 0) note(aboutToken(after, 'token.updated', details));
        return { token: after };
      }),

    rotateToken: ({ params: { tokenId }, body: { graceSeconds } }, { actor }) =>
      audited(pool, actor, async (client, note) => {
        const inside = new TokenReader(client, config);
        const { kind } = await inside.find(tokenId);
        const secret = await new AccessStore(client).rotateToken(tokenId, kind, graceSeconds);
        if (secret === null) throw new AdminRefused('conflict', 'Only an active token can be rotated.');
        const token = await inside.find(tokenId);
        note(aboutToken(token, 'token.rotated', { graceSeconds }));
        return { token, secret };
      }),

    revokeToken: ({ params: { tokenId } }, { actor }) =>
      audited(pool, actor, async (client, note) => {
        const inside = new TokenReader(client, config);
        await inside.find(tokenId);
        const revoked = await new AccessStore(client).revokeToken(tokenId);
        const token = await inside.find(tokenId);
        if (revoked) note(aboutToken(token, 'token.revoked', {}));
        return { token };
      }),
  };
}

function mint(store: AccessStore, body: Body<'mintToken'>): Promise<MintedToken> {
  return store.mintToken({ ...body, expiresAt: toDate(body.expiresAt) ?? null });
}

function toDate(time: string | null | undefined): Date | null | undefined {
  return typeof time === 'string' ? new Date(time) : time;
}

/** Turns AccessRefused into AdminRefused. */
async function orRefuse<T>(work: Promise<T>): Promise<T> {
  return work.catch((error: unknown) => {
    throw error instanceof AccessRefused ? new AdminRefused('invalid_request', error.message) : error;
  });
}

const isRevoked = (): AdminRefused => new AdminRefused('conflict', 'The token is revoked; create a new one.');

const CHANGEABLE = ['name', 'expiresAt', 'allowAttribution', 'agentIds', 'requestsPerMinute', 'maxStreams'] as const;

function differences(before: TokenRecord, after: TokenRecord): Record<string, unknown> {
  const changed = CHANGEABLE.filter((field) => JSON.stringify(before[field]) !== JSON.stringify(after[field]));
  return Object.fromEntries(changed.map((field) => [field, after[field]]));
}
