import type { Pool } from 'pg';
import { newId } from '#platform';
import { hashToken, makeToken } from './token-format.ts';

/** What a token is minted for. */
export type NewToken = { name: string; expiresAt?: Date } & (
  | { kind: 'person'; personId: string }
  | { kind: 'service'; organizationId: string; agentIds: readonly string[]; allowAttribution?: boolean }
  | { kind: 'operator' }
);

export interface MintedToken {
  id: string;
  /** Shown once: only its SHA-256 is stored. */
  token: string;
}

/** What was asked for cannot be; the message says why. */
export class AccessRefused extends Error {
  override name = 'AccessRefused';
}

const MAX_AGENTS = 100;

/** Organizations, people and tokens (decisions, section 8), as operators manage them. */
export class AccessStore {
  constructor(private readonly pool: Pool) {}

  async createOrganization(name: string): Promise<string> {
    const id = newId();
    await this.pool.query('insert into organizations (id, name) values ($1, $2)', [id, name]);
    return id;
  }

  async createPerson(name: string): Promise<string> {
    const id = newId();
    await this.pool.query('insert into people (id, name) values ($1, $2)', [id, name]);
    return id;
  }

  /** Adding a member twice is adding them once. */
  async addMember(organizationId: string, personId: string): Promise<void> {
    await this.pool.query(
      'insert into memberships (organization_id, person_id) values ($1, $2) on conflict do nothing',
      [organizationId, personId],
    );
  }

  /** Throws AccessRefused where a service token has not 1..100 agents, all of them its organization's. */
  async mintToken(wanted: NewToken): Promise<MintedToken> {
    const id = newId();
    const token = makeToken(wanted.kind);
    const service = wanted.kind === 'service' ? wanted : null;
    const agentIds = [...new Set(service?.agentIds)];
    if (service !== null && (agentIds.length < 1 || agentIds.length > MAX_AGENTS)) {
      throw new AccessRefused(`A service token lists 1 to ${MAX_AGENTS} agents, not ${agentIds.length}.`);
    }
    // One statement: a token without its agents must not exist, and neither one that names another organization's.
    const { rowCount } = await this.pool.query(
      `with own as (select id from agents where id = any ($8::text[]) and organization_id = $4),
            token as (
              insert into tokens (id, kind, hash, organization_id, person_id, name, expires_at, allow_attribution)
              select $1, $2, $3, $4, $5, $6, $7, $9 where (select count(*) from own) = cardinality($8::text[])
              returning id
            ),
            listed as (insert into token_agents (token_id, agent_id) select token.id, own.id from token, own)
       select id from token`,
      [
        id,
        wanted.kind,
        hashToken(token),
        service?.organizationId ?? null,
        wanted.kind === 'person' ? wanted.personId : null,
        wanted.name,
        wanted.expiresAt ?? null,
        agentIds,
        service?.allowAttribution ?? false,
      ],
    );
    if (rowCount === 0) throw new AccessRefused('A service token may only list agents of its own organization.');
    return { id, token };
  }

  /** Every pod sees it within 5 s, open streams included. Revoking twice keeps the first time. */
  async revokeToken(tokenId: string): Promise<void> {
    await this.pool.query('update tokens set revoked_at = coalesce(revoked_at, now()) where id = $1', [tokenId]);
  }
}
