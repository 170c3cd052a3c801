import type { Pool } from 'pg';
import { ulid } from 'ulid';
import { openDatabase, type Database } from '#platform';
import { createTestDatabase, eventually, type TestDatabase } from '#testing';
import { AccessRefused, AccessStore, Authenticator } from './index.ts';
import { makeToken } from './token-format.ts';

let testDatabase: TestDatabase;
let database: Database;
let pool: Pool;
let access: AccessStore;
let now: number;
let authenticator: Authenticator;
let organizationId: string;
let personId: string;

beforeAll(async () => {
  testDatabase = await createTestDatabase();
  database = await openDatabase({ url: testDatabase.url, applicationName: 'test', maxConnections: 4 });
  pool = database.pool;
  access = new AccessStore(pool);
  organizationId = await access.createOrganization('Acme');
  personId = await access.createPerson('Ada');
  await access.addMember(organizationId, personId);
});
afterAll(async () => {
  await database.close();
  await testDatabase.drop();
});
beforeEach(() => {
  now = Date.now();
  authenticator = new Authenticator({ pool, now: () => now });
});

const bearer = (token: string) => authenticator.authenticate(`Bearer ${token}`);
const newToken = (expiresAt?: Date) =>
  access.mintToken({ kind: 'person', personId, name: 'n', ...(expiresAt && { expiresAt }) });
const newAgent = async (organization = organizationId) => {
  const id = ulid();
  await pool.query(`insert into agents (id, organization_id, name, kind) values ($1, $2, 'a', 'cattle')`, [
    id,
    organization,
  ]);
  return id;
};

describe('authenticate', () => {
  it('tells a person, with organizations and invitations', async () => {
    const agentId = await newAgent();
    await pool.query('insert into agent_people (agent_id, person_id) values ($1, $2)', [agentId, personId]);
    const { id, token } = await newToken();
    expect(await bearer(token)).toEqual({
      kind: 'person',
      tokenId: id,
      personId,
      organizationIds: new Set([organizationId]),
      invitedAgentIds: new Set([agentId]),
    });
  });

  it('tells a service, with its agents', async () => {
    const agentIds = [await newAgent(), await newAgent()];
    const wanted = { kind: 'service', organizationId, agentIds, name: 'n', allowAttribution: true } as const;
    const { id, token } = await access.mintToken(wanted);
    expect(await bearer(token)).toEqual({
      kind: 'service',
      tokenId: id,
      organizationId,
      agentIds: new Set(agentIds),
      allowAttribution: true,
    });
  });

  it('tells an operator', async () => {
    const { id, token } = await access.mintToken({ kind: 'operator', name: 'n' });
    expect(await bearer(token)).toEqual({ kind: 'operator', tokenId: id });
  });

  it('takes the scheme in any case and nothing else for it', async () => {
    const { token } = await newToken();
    expect(await authenticator.authenticate(`bearer  ${token} `)).not.toBeNull();
    for (const header of [undefined, '', token, `Basic ${token}`, `Bearer`, `Bearer ${token} x`, `Bearer${token}`]) {
      expect(await authenticator.authenticate(header)).toBeNull();
    }
  });

  it('does not ask the database about forms that it never made', async () => {
    const asked = jest.spyOn(pool, 'query');
    for (const legacy of ['sk-abc', makeToken('person').slice(0, -1)]) expect(await bearer(legacy)).toBeNull();
    expect(asked).not.toHaveBeenCalled();
    expect(await bearer(makeToken('person'))).toBeNull();
    expect(asked).toHaveBeenCalledTimes(1);
    asked.mockRestore();
  });

  it('looks once for many requests at once, and remembers for less than 5 s', async () => {
    const { id, token } = await newToken();
    await bearer(token);
    await eventually(() => lastUsed(id), { what: 'its use is written' });
    const asked = jest.spyOn(pool, 'query');
    authenticator = new Authenticator({ pool, now: () => now });
    await Promise.all([bearer(token), bearer(token), bearer(token)]);
    expect(asked).toHaveBeenCalledTimes(1);
    now += 4_999;
    await bearer(token);
    expect(asked).toHaveBeenCalledTimes(2);
    asked.mockRestore();
  });

  it('sees a revocation within 5 s', async () => {
    const { id, token } = await newToken();
    expect(await bearer(token)).not.toBeNull();
    await access.revokeToken(id);
    now += 4_999;
    expect(await bearer(token)).toBeNull();
  });

  it('sees the expiry at its time, though it remembers the token', async () => {
    const { token } = await newToken(new Date(now + 1_000));
    expect(await bearer(token)).not.toBeNull();
    now += 999;
    expect(await bearer(token)).not.toBeNull();
    now += 1;
    expect(await bearer(token)).toBeNull();
  });

  it('does not remember that the database was away', async () => {
    const { token } = await newToken();
    const asked = jest.spyOn(pool, 'query').mockImplementationOnce(() => Promise.reject(new Error('away')) as never);
    await expect(bearer(token)).rejects.toThrow('away');
    expect(await bearer(token)).not.toBeNull();
    asked.mockRestore();
  });
});

describe('last_used_at', () => {
  it('is written at most once a minute', async () => {
    const { id, token } = await newToken();
    await bearer(token);
    const first = await eventually(() => lastUsed(id), { what: 'the first use is written' });
    now += 10_000;
    const asked = jest.spyOn(pool, 'query');
    await bearer(token);
    expect(asked).toHaveBeenCalledTimes(1);
    asked.mockRestore();
    await pool.query(`update tokens set last_used_at = now() - interval '61 seconds' where id = $1`, [id]);
    now += 10_000;
    await bearer(token);
    await eventually(async () => ((await lastUsed(id)) ?? '') >= first, { what: 'the use a minute later is written' });
  });
});

describe('mintToken', () => {
  it('stores a hash and not the token', async () => {
    const { id, token } = await newToken();
    const { rows } = await pool.query<{ row: string }>('select t::text as row from tokens t where id = $1', [id]);
    expect(rows[0]?.row).toContain(personId);
    expect(rows[0]?.row).not.toContain(token.slice('spool_pat_'.length));
  });

  it('refuses a service token without 1..100 agents of its own organization', async () => {
    const own = await newAgent();
    const foreign = await newAgent(await access.createOrganization('Other'));
    const mint = (agentIds: string[]) => access.mintToken({ kind: 'service', organizationId, agentIds, name: 'n' });
    const before = await countTokens();
    await expect(mint([])).rejects.toThrow(AccessRefused);
    await expect(mint(Array.from({ length: 101 }, (_, i) => `${own}${i}`))).rejects.toThrow(AccessRefused);
    await expect(mint([own, foreign])).rejects.toThrow('own organization');
    await expect(mint([own, 'unknown'])).rejects.toThrow(AccessRefused);
    expect(await countTokens()).toBe(before);
    await mint([own, own]);
    expect(await countTokens()).toBe(before + 1);
  });
});

async function lastUsed(tokenId: string): Promise<string | null> {
  const { rows } = await pool.query<{ at: string | null }>('select last_used_at as at from tokens where id = $1', [
    tokenId,
  ]);
  return rows[0]?.at ?? null;
}

async function countTokens(): Promise<number> {
  const { rows } = await pool.query<{ count: number }>('select count(*) as count from tokens');
  return rows[0]?.count ?? 0;
}
