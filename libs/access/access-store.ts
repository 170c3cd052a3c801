import { newId, type Queryable } from '#platform';
import { hashToken, makeToken, type TokenKind } from './token-format.ts';

/** The properties of a new token. */
export type NewToken = {
  name: string;
  /** Null means never. */
  expiresAt?: Date | null;
  /** Null or undefined means the default of its kind. */
  requestsPerMinute?: number | null | undefined;
  maxStreams?: number | null | undefined;
} & (
  | { kind: 'person'; personId: string }
  | { kind: 'service'; organizationId: string; agentIds: readonly string[]; allowAttribution?: boolean }
  | { kind: 'operator' }
);

export interface MintedToken {
  id: string;
  /** Shown once: only its SHA-256 is stored. */
  token: string;
}

/** The refusal of a change that the access rules forbid. */
export class AccessRefused extends Error {
  override name = 'AccessRefused';
}

/** The most Agents that a service token lists. */
export const MAX_AGENTS = 100;

/** A change of a token. Undefined fields stay as they are. */
export interface TokenChange {
  name?: string | undefined;
  expiresAt?: Date | null | undefined;
  allowAttribution?: boolean | undefined;
  /** Null means the default of its kind. */
  requestsPerMinute?: number | null | undefined;
  maxStreams?: number | null | undefined;
  addAgentIds?: readonly string[];
  removeAgentIds?: readonly string[];
}

/** Changes organizations, people and tokens (docs/spec/decisions.md#tokens), on a pool or in the caller's transaction. */
export class AccessStore {
  constructor(private readonly database: Queryable) {}

  async createOrganization(name: string): Promise<string> {
    const id = newId();
    await this.database.query('insert into organizations (id, name) values ($1, $2)', [id, name]);
    return id;
  }

  async createPerson(name: string): Promise<string> {
    const id = newId();
    await this.database.query('insert into people (id, name) values ($1, $2)', [id, name]);
    return id;
  }

  /** Returns whether the organization exists. */
  async renameOrganization(id: string, name: string): Promise<boolean> {
    return this.changes('update organizations set name = $2 where id = $1', [id, name]);
  }

  /** Sets the maximum of concurrently executed Runs; null means no limit. Returns whether the organization exists. */
  async limitOrganization(id: string, maxRuns: number | null): Promise<boolean> {
    return this.changes('update organizations set max_runs = $2 where id = $1', [id, maxRuns]);
  }

  /** Sets the quota of files and their bytes; null means the installation's setting. Returns whether the organization exists. */
  async setFileQuota(id: string, maxFiles: number | null, maxBytes: number | null): Promise<boolean> {
    const update = 'update organizations set max_files = $2, max_file_bytes = $3 where id = $1';
    return this.changes(update, [id, maxFiles, maxBytes]);
  }

  /** Returns whether the person exists. */
  async renamePerson(id: string, name: string): Promise<boolean> {
    return this.changes('update people set name = $2 where id = $1', [id, name]);
  }

  /** Returns false if the person was a member already. */
  async addMember(organizationId: string, personId: string): Promise<boolean> {
    const insert = 'insert into memberships (organization_id, person_id) values ($1, $2) on conflict do nothing';
    return this.changes(insert, [organizationId, personId]);
  }

  /** Returns whether the person was a member. */
  async removeMember(organizationId: string, personId: string): Promise<boolean> {
    const remove = 'delete from memberships where organization_id = $1 and person_id = $2';
    return this.changes(remove, [organizationId, personId]);
  }

  /** Creates a token. Throws AccessRefused if a service token does not have 1 to 100 agents of its organization. */
  async mintToken(wanted: NewToken): Promise<MintedToken> {
    const id = newId();
    const token = makeToken(wanted.kind);
    const service = wanted.kind === 'service' ? wanted : null;
    const agentIds = [...new Set(service?.agentIds)];
    if (service !== null && (agentIds.length < 1 || agentIds.length > MAX_AGENTS)) {
      throw new AccessRefused(agentCount(agentIds.length));
    }
    // One statement, so that no token exists without its agents or with an agent of another organization.
    const { rowCount } = await this.database.query(
      `with own as (select id from agents where id = any ($8::text[]) and organization_id = $4),
            token as (
              insert into tokens (id, kind, hash, organization_id, person_id, name, expires_at, allow_attribution,
                                  requests_per_minute, max_streams)
              select $1, $2, $3, $4, $5, $6, $7, $9, $10, $11 where (select count(*) from own) = cardinality($8::text[])
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
        wanted.requestsPerMinute ?? null,
        wanted.maxStreams ?? null,
      ],
    );
    if (rowCount === 0) throw new AccessRefused(FOREIGN_AGENT);
    return { id, token };
  }

  /** Revokes a token; every process and open stream sees it within 5 s. Returns false if it was revoked already. */
  async revokeToken(tokenId: string): Promise<boolean> {
    return this.changes('update tokens set revoked_at = now() where id = $1 and revoked_at is null', [tokenId]);
  }

  /**
   * Replaces the secret of a token and returns the new one. The old one works for `graceSeconds` more, older ones no longer.
   * Returns null if the token does not exist, is revoked or has expired.
   */
  async rotateToken(tokenId: string, kind: TokenKind, graceSeconds: number): Promise<string | null> {
    const secret = makeToken(kind);
    const rotated = await this.changes(
      `update tokens
       set hash           = $2,
           rotated_at     = now(),
           old_hash       = case when $3 > 0 then hash end,
           old_hash_until = case when $3 > 0 then now() + $3 * interval '1 second' end
       where id = $1 and revoked_at is null and (expires_at is null or expires_at > now())`,
      [tokenId, hashToken(secret), graceSeconds],
    );
    return rotated ? secret : null;
  }

  /**
   * Changes a token. Throws AccessRefused if a service token would not have 1 to 100 agents of its organization, or another
   * token would have any. The caller's transaction must then roll back earlier changes.
   */
  async updateToken(tokenId: string, change: TokenChange): Promise<void> {
    const { name = null, expiresAt, allowAttribution = null, requestsPerMinute, maxStreams } = change;
    const { addAgentIds = [], removeAgentIds = [] } = change;
    await this.database.query(
      `update tokens
       set name                = coalesce($2, name),
           expires_at          = case when $3 then $4::timestamptz else expires_at end,
           allow_attribution   = coalesce($5, allow_attribution),
           requests_per_minute = case when $6 then $7::integer else requests_per_minute end,
           max_streams         = case when $8 then $9::integer else max_streams end
       where id = $1`,
      [tokenId, name, ...setTo(expiresAt), allowAttribution, ...setTo(requestsPerMinute), ...setTo(maxStreams)],
    );
    if (addAgentIds.length + removeAgentIds.length === 0) return;
    const remove = 'delete from token_agents where token_id = $1 and agent_id = any ($2::text[])';
    await this.database.query(remove, [tokenId, removeAgentIds]);
    await this.database.query(
      `insert into token_agents (token_id, agent_id, added_at)
       select t.id, a.id, clock_timestamp() from tokens t join agents a using (organization_id)
       where t.id = $1 and t.kind = 'service' and a.id = any ($2::text[])
       on conflict do nothing`,
      [tokenId, addAgentIds],
    );
    const { rows } = await this.database.query<{ ids: string[] }>(
      'select array(select agent_id from token_agents where token_id = $1) as ids',
      [tokenId],
    );
    const ids = rows[0]?.ids ?? [];
    if (addAgentIds.some((id) => !ids.includes(id))) throw new AccessRefused(FOREIGN_AGENT);
    if (ids.length < 1 || ids.length > MAX_AGENTS) throw new AccessRefused(agentCount(ids.length));
  }

  private async changes(text: string, values: unknown[]): Promise<boolean> {
    const { rowCount } = await this.database.query(text, values);
    return (rowCount ?? 0) > 0;
  }
}

/** Returns whether a nullable column is set, and its value. */
const setTo = <T>(value: T | null | undefined): [boolean, T | null] => [value !== undefined, value ?? null];

const FOREIGN_AGENT = 'Only a service token lists agents, and only those of the same organization.';
const agentCount = (count: number): string => `A service token lists 1 to ${MAX_AGENTS} agents, not ${count}.`;
