import { hash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Pool, PoolClient } from 'pg';
import { AccessStore, MAX_AGENTS, type BrowserTokens, type LimitSettings } from '#access';
import { BROWSER_TOKEN_SECONDS, createBrowserTokenBody, VERBS, type ManagedAgent, type TokenRecord } from '#contract';
import { namedStatement, TRUSTED_MS } from '#platform';
import { audited, lockRow, type Note } from './audit.ts';
import type { SomeHandlers } from './handlers.ts';
import { AdminReader } from './reader.ts';
import { AdminRefused, missing } from './refused.ts';
import { aboutNewToken, aboutToken, TokenReader } from './token-reader.ts';

/** How long a transaction may take to commit after it has added an Agent. */
const COMMIT_MS = 1_000;

const LONGEST_UNUSED = namedStatement(`${import.meta.dirname}/queries`, 'longest-unused-agent.sql').text;

export interface ChatTokenParts {
  pool: Pool;
  config: LimitSettings;
  browserTokens: BrowserTokens;
}

/** Handles chat tokens: browser tokens with which operators use one Agent through the Agent Threads API. */
export function chatTokenHandlers({ pool, config, browserTokens }: ChatTokenParts): SomeHandlers<'createChatToken'> {
  return {
    createChatToken: async ({ body: { agentId } }, { actor, holder, signal }) => {
      if (holder === null) {
        const message = 'A chat token needs an operator token or a session; run the command without --local.';
        throw new AdminRefused('invalid_request', message);
      }
      const { answer, waitMs } = await audited(pool, actor, async (client, note) => {
        const { organizationId } = await findUsableAgent(client, agentId);
        if (!browserTokens.isOn) {
          const message = 'This installation has no keys for chat tokens; set BROWSER_TOKEN_KEYS.';
          throw new AdminRefused('conflict', message);
        }
        const tokenId = await ensureParent(client, note, { organizationId, agentId, config });
        const waitMs = await staleFor(client, tokenId, agentId);
        const userId = userIdOf(actor.name);
        const claims = { parentId: tokenId, userId, agentId, threadId: null, verbs: Object.keys(VERBS), origins: null };
        const made = await browserTokens.make({ ...claims, holder }, BROWSER_TOKEN_SECONDS);
        const details = { tokenId, userId, expiresAt: made.expiresAt };
        note({ action: 'chat_token.created', targetId: agentId, organizationId, details });
        return { answer: { ...made, userId, agentId, organizationId, tokenId }, waitMs };
      });
      // Otherwise the first requests could get 403.
      if (waitMs > 0) await sleep(waitMs, undefined, { signal }).catch(() => signal.throwIfAborted());
      return answer;
    },
  };
}

/** The states in which callers cannot use an Agent, in the order in which the Agent Threads API checks them. */
const UNUSABLE: [(agent: ManagedAgent) => boolean, string][] = [
  [({ published }) => !published, 'The Agent is not published; publish it first.'],
  [({ apiEnabled }) => !apiEnabled, 'The Agent’s API access is switched off; switch it on first.'],
  [({ liveVersion }) => liveVersion === null, 'The Agent has no live version; apply a manifest first.'],
];

/** Throws AdminRefused. */
async function findUsableAgent(client: PoolClient, id: string): Promise<ManagedAgent> {
  const [agent] = await new AdminReader(client).agents({ id });
  if (agent === undefined || agent.deletedAt !== null) throw missing('Agent', id);
  const problem = UNUSABLE.find(([is]) => is(agent));
  if (problem !== undefined) throw new AdminRefused('conflict', problem[1]);
  return agent;
}

interface ParentWanted {
  organizationId: string;
  agentId: string;
  config: LimitSettings;
}

/** Returns the id of the organization's service token, which lists the Agent. Creates it if there is no active one. */
async function ensureParent(client: PoolClient, note: Note, wanted: ParentWanted): Promise<string> {
  const { organizationId, agentId, config } = wanted;
  const tokens = new TokenReader(client, config);
  // Only one request at a time creates the service token of an organization.
  await lockRow(client, 'organizations', organizationId);
  const current = await findParent(client, tokens, organizationId);
  if (current === null) {
    const token = await tokens.find(await mintParent(client, organizationId, agentId));
    note(aboutNewToken(token));
    return token.id;
  }
  const tokenId = current.id;
  if (current.agentIds.includes(agentId)) return tokenId;
  const isFull = current.agentIds.length >= MAX_AGENTS;
  const removeAgentIds = isFull ? await findLongestUnused(client, tokenId) : [];
  await new AccessStore(client).updateToken(tokenId, { addAgentIds: [agentId], removeAgentIds });
  const changed = await tokens.find(tokenId);
  note(aboutToken(changed, 'token.updated', { agentIds: changed.agentIds }));
  return tokenId;
}

/**
 * Returns for how many milliseconds processes may still have cached the service token without the Agent. Another request may have
 * added it, and only its commit is visible to the processes.
 */
async function staleFor(client: PoolClient, tokenId: string, agentId: string): Promise<number> {
  const { rows } = await client.query<{ ageMs: number | null }>(
    `select extract(epoch from clock_timestamp() - added_at)::float8 * 1000 as "ageMs"
     from token_agents where token_id = $1 and agent_id = $2`,
    [tokenId, agentId],
  );
  // Null: the Agent is in the list since the token exists.
  const ageMs = rows[0]?.ageMs ?? Infinity;
  return Math.min(TRUSTED_MS, Math.max(0, TRUSTED_MS + COMMIT_MS - ageMs));
}

/** Returns the active service token and locks it until the end of the transaction, or null. */
async function findParent(
  client: PoolClient,
  tokens: TokenReader,
  organizationId: string,
): Promise<TokenRecord | null> {
  const { rows } = await client.query<{ tokenId: string }>(
    'select token_id as "tokenId" from chat_tokens where organization_id = $1',
    [organizationId],
  );
  const [row] = rows;
  if (row === undefined) return null;
  await lockRow(client, 'tokens', row.tokenId);
  const token = await tokens.find(row.tokenId);
  return token.status === 'active' ? token : null;
}

/** Returns the id. No one needs the secret. */
async function mintParent(client: PoolClient, organizationId: string, agentId: string): Promise<string> {
  const wanted = { kind: 'service', organizationId, agentIds: [agentId], name: 'chat' } as const;
  const { id } = await new AccessStore(client).mintToken(wanted);
  await client.query(
    `insert into chat_tokens (organization_id, token_id) values ($1, $2)
     on conflict (organization_id) do update set token_id = excluded.token_id`,
    [organizationId, id],
  );
  return id;
}

/** Returns the Agent that a full list loses. Its next chat token adds it again, with its Threads. */
async function findLongestUnused(client: PoolClient, tokenId: string): Promise<string[]> {
  const { rows } = await client.query<{ agentId: string }>(LONGEST_UNUSED, [tokenId]);
  return rows.map(({ agentId }) => agentId);
}

/** Returns the user of an operator. A name that is too long for a user is hashed, so that each name has its own user. */
function userIdOf(name: string): string {
  const plain = `operator:${name}`;
  const isAllowed = createBrowserTokenBody.shape.userId.safeParse(plain).success;
  return isAllowed ? plain : `operator-sha256:${hash('sha256', name)}`;
}
