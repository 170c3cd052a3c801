import type { Pool } from 'pg';
import { ulid } from 'ulid';
import {
  loadConfig,
  newId,
  openDatabase,
  openPolicyVersions,
  parseSigningKeys,
  PolicyWatch,
  type Database,
} from '#platform';
import { createTestDatabase, eventually, type TestDatabase } from '#testing';
import { AccessRefused, AccessStore, Authenticator, BrowserTokens, FileLinks, SignedTokens } from './index.ts';
import { endSession, openSession, type BrowserCaller, type BrowserTokenHolder } from './index.ts';
import { hashToken, makeToken } from './token-format.ts';

let testDatabase: TestDatabase;
let database: Database;
let pool: Pool;
let access: AccessStore;
/** The clock of the process, milliseconds. The database has its own. */
let now: number;
let watch: PolicyWatch;
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
beforeEach(async () => {
  now = Date.now();
  // Looks only when called, and stays trusted because its clock is set by the test.
  watch = new PolicyWatch({
    versions: openPolicyVersions(testDatabase.url),
    now: () => ({ monotonic: now, wall: now }),
  });
  await watch.look();
  authenticator = new Authenticator({ pool, watch, settings });
});
afterEach(() => watch.stop());

/** The token and person of a change. */
const one = { id: '', token: '', personId: '' };

const settings = loadConfig({});
const HOUR_MS = 3_600_000;

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
  it('returns a person with organizations and invitations', async () => {
    const agentId = await newAgent();
    await pool.query('insert into agent_people (agent_id, person_id) values ($1, $2)', [agentId, personId]);
    const { id, token } = await newToken();
    expect(await bearer(token)).toEqual({
      kind: 'person',
      tokenId: id,
      limits: { requestsPerMinute: 600, maxStreams: 100 },
      personId,
      organizationIds: new Set([organizationId]),
      invitedAgentIds: new Set([agentId]),
    });
  });

  it('returns a service with its agents', async () => {
    const agentIds = [await newAgent(), await newAgent()];
    const wanted = { kind: 'service', organizationId, agentIds, name: 'n', allowAttribution: true } as const;
    const { id, token } = await access.mintToken(wanted);
    expect(await bearer(token)).toEqual({
      kind: 'service',
      tokenId: id,
      limits: { requestsPerMinute: 6_000, maxStreams: 10_000 },
      organizationId,
      agentIds: new Set(agentIds),
      allowAttribution: true,
    });
  });

  it('returns an operator', async () => {
    const { id, token } = await access.mintToken({ kind: 'operator', name: 'n' });
    expect(await bearer(token)).toEqual({
      kind: 'operator',
      tokenId: id,
      limits: { requestsPerMinute: 600, maxStreams: null },
      tokenName: 'n',
    });
  });

  it.each(['person', 'operator'] as const)(
    'applies the limits of a %s token, and their reset to defaults',
    async (kind) => {
      const whose = kind === 'person' ? { kind, personId } : { kind };
      const { id, token } = await access.mintToken({ ...whose, name: 'n', requestsPerMinute: 7, maxStreams: 8 });
      await watch.look();
      // Operators cannot open streams.
      const maxStreams = (own: number) => (kind === 'person' ? own : null);
      expect((await bearer(token))?.limits).toEqual({ requestsPerMinute: 7, maxStreams: maxStreams(8) });
      await access.updateToken(id, { requestsPerMinute: 9 });
      await watch.look();
      expect((await bearer(token))?.limits).toEqual({ requestsPerMinute: 9, maxStreams: maxStreams(8) });
      await access.updateToken(id, { requestsPerMinute: null, maxStreams: null });
      await watch.look();
      expect((await bearer(token))?.limits).toEqual({ requestsPerMinute: 600, maxStreams: maxStreams(100) });
    },
  );

  it('accepts the bearer scheme in any case and no other', async () => {
    const { token } = await newToken();
    expect(await authenticator.authenticate(`bearer  ${token} `)).not.toBeNull();
    for (const header of [undefined, '', token, `Basic ${token}`, `Bearer`, `Bearer ${token} x`, `Bearer${token}`]) {
      expect(await authenticator.authenticate(header)).toBeNull();
    }
  });

  it('rejects malformed tokens without a query', async () => {
    const asked = jest.spyOn(pool, 'query');
    for (const legacy of ['sk-abc', makeToken('person').slice(0, -1)]) expect(await bearer(legacy)).toBeNull();
    expect(asked).not.toHaveBeenCalled();
    expect(await bearer(makeToken('person'))).toBeNull();
    expect(asked).toHaveBeenCalledTimes(1);
    asked.mockRestore();
  });

  it('reads a token once for concurrent requests, and not again while nothing changes', async () => {
    const { token } = await newToken();
    const asked = jest.spyOn(pool, 'query');
    await Promise.all([bearer(token), bearer(token), bearer(token)]);
    expect(namesOf(asked)).toEqual(['find-token', 'touch-token']);
    for (let second = 0; second < 7_200; second += 600) {
      now += 600_000;
      await watch.look();
      expect(await bearer(token)).not.toBeNull();
    }
    expect(namesOf(asked).filter((name) => name !== 'touch-token')).toEqual(['find-token']);
    asked.mockRestore();
  });

  it.each([
    ['a revocation', () => access.revokeToken(one.id), null],
    [
      'an earlier expiry',
      () => pool.query(`update tokens set expires_at = created_at - interval '1 hour' where id = $1`, [one.id]),
      null,
    ],
    ['a deletion', () => pool.query('delete from tokens where id = $1', [one.id]), null],
    [
      'a removed membership',
      () => pool.query('delete from memberships where person_id = $1', [one.personId]),
      { organizationIds: new Set() },
    ],
    [
      'a new membership',
      async () => access.addMember(await access.createOrganization('Other'), one.personId),
      { organizationIds: { size: 2 } },
    ],
  ])('applies %s as soon as the policy watch sees it', async (_, change, seen) => {
    one.personId = await access.createPerson('Bob');
    await access.addMember(organizationId, one.personId);
    Object.assign(one, await access.mintToken({ kind: 'person', personId: one.personId, name: 'n' }));
    await watch.look();
    expect(await bearer(one.token)).toMatchObject({ organizationIds: new Set([organizationId]) });
    await change();
    expect(await bearer(one.token)).not.toBeNull();
    await watch.look();
    const caller = await bearer(one.token);
    if (seen === null) expect(caller).toBeNull();
    else expect(caller).toMatchObject(seen);
  });

  it('accepts a new token immediately, even if it was tried before it existed', async () => {
    const { id, token } = await newToken();
    await pool.query('delete from tokens where id = $1', [id]);
    await watch.look();
    expect(await bearer(token)).toBeNull();
    const values = [id, hashToken(token), personId];
    await pool.query(`insert into tokens (id, kind, hash, name, person_id) values ($1, 'person', $2, 'n', $3)`, values);
    expect(await bearer(token)).not.toBeNull();
  });

  it('rejects a cached token after its expiry', async () => {
    const { id, token } = await newToken(new Date(Date.now() + HOUR_MS));
    expect(await bearer(token)).not.toBeNull();
    await expireUnnoticed(id);
    expect(await bearer(token)).not.toBeNull();
    now += HOUR_MS;
    await watch.look();
    expect(await bearer(token)).toBeNull();
  });

  it('decides expiry by the clock of the database if its own clock was set', async () => {
    const { id, token } = await newToken(new Date(Date.now() + HOUR_MS));
    for (const [set, times] of Object.entries({ ahead: 2, back: -2 })) {
      now += times * HOUR_MS;
      await watch.look();
      expect({ set, caller: await bearer(token) }).toMatchObject({ set, caller: { tokenId: id } });
    }
    await expireUnnoticed(id);
    now -= 2 * HOUR_MS;
    await watch.look();
    expect(await bearer(token)).toBeNull();
  });

  it('does not cache a failed read', async () => {
    const { token } = await newToken();
    const asked = jest
      .spyOn(pool, 'query')
      .mockImplementationOnce(() => Promise.reject(new Error('unavailable')) as never);
    await expect(bearer(token)).rejects.toThrow('unavailable');
    expect(await bearer(token)).not.toBeNull();
    asked.mockRestore();
  });
});

describe('last_used_at', () => {
  it('is written at most once a minute', async () => {
    const { id, token } = await newToken();
    const asked = jest.spyOn(pool, 'query');
    const use = () => Promise.all([bearer(token), bearer(token)]);
    await use();
    const first = await eventually(() => lastUsed(id), { what: 'the first use is written' });
    now += 60_000;
    await watch.look();
    await use();
    // Another read or another process must not write it within the minute either.
    await watch.look();
    await use();
    const elsewhere = new Authenticator({ pool, watch, settings });
    await elsewhere.authenticate(`Bearer ${token}`);
    await eventually(() => touches(asked).length === 2, { what: 'the other process has tried' });
    await Promise.all(touches(asked));
    expect(await lastUsed(id)).toBe(first);

    await pool.query(`update tokens set last_used_at = now() - interval '61 seconds' where id = $1`, [id]);
    now += 1_000;
    await watch.look();
    await use();
    await eventually(async () => ((await lastUsed(id)) ?? '') >= first, { what: 'the use a minute later is written' });
    expect(namesOf(asked).filter((name) => name === 'touch-token')).toHaveLength(3);
    asked.mockRestore();
  });

  it('is not written for a refused token', async () => {
    const { id, token } = await newToken(new Date());
    expect(await bearer(token)).toBeNull();
    expect(await lastUsed(id)).toBeNull();
  });
});

describe('mintToken', () => {
  it('does not store the secret', async () => {
    const { id, token } = await newToken();
    const { rows } = await pool.query<{ row: string }>('select t::text as row from tokens t where id = $1', [id]);
    expect(rows[0]?.row).toContain(personId);
    expect(rows[0]?.row).not.toContain(token.slice('spool_pat_'.length));
  });

  it('refuses a service token without 1 to 100 agents of the same organization', async () => {
    const own = await newAgent();
    const foreign = await newAgent(await access.createOrganization('Other'));
    const mint = (agentIds: string[]) => access.mintToken({ kind: 'service', organizationId, agentIds, name: 'n' });
    const before = await countTokens();
    await expect(mint([])).rejects.toThrow(AccessRefused);
    await expect(mint(Array.from({ length: 101 }, (_, i) => `${own}${i}`))).rejects.toThrow(AccessRefused);
    await expect(mint([own, foreign])).rejects.toThrow('same organization');
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

/** Expires a token without a new version of the policy. */
async function expireUnnoticed(id: string): Promise<void> {
  const owner = await openDatabase({ url: testDatabase.ownerUrl, applicationName: 'test', maxConnections: 1 });
  await owner.pool.query('set session_replication_role = replica');
  await owner.pool.query('update tokens set expires_at = clock_timestamp() where id = $1', [id]);
  await owner.close();
}

async function countTokens(): Promise<number> {
  const { rows } = await pool.query<{ count: number }>('select count(*) as count from tokens');
  return rows[0]?.count ?? 0;
}

type Asked = jest.SpyInstance<unknown, unknown[]>;

/** Returns the names of the executed statements. */
function namesOf(asked: unknown): (string | undefined)[] {
  return (asked as Asked).mock.calls.map(([statement]) => (statement as { name?: string }).name);
}

/** Returns the results of the executed touches. */
function touches(asked: unknown): unknown[] {
  const { mock } = asked as Asked;
  const results = mock.results.map(({ value }) => value as unknown);
  return results.filter((_, i) => (mock.calls[i]?.[0] as { name?: string }).name === 'touch-token');
}

describe('a browser token of an operator', () => {
  const signed = new SignedTokens(parseSigningKeys(`k:${'a'.repeat(43)}=`));
  const admission = { beforeLookUp: () => Promise.resolve() };
  const links = new FileLinks(signed);
  let parentId: string;
  beforeEach(async () => {
    authenticator = new Authenticator({ pool, watch, settings, browserTokens: new BrowserTokens(signed) });
    const wanted = { kind: 'service', organizationId, agentIds: [await newAgent()], name: 'chat' } as const;
    parentId = (await access.mintToken(wanted)).id;
  });

  const tokenOf = async (holder: BrowserTokenHolder): Promise<string> => {
    const claims = { parentId, userId: 'u', agentId: null, threadId: null, verbs: ['read'], origins: null, holder };
    return (await new BrowserTokens(signed).make(claims, 60)).token;
  };
  const newSession = async () => {
    const operator = await access.mintToken({ kind: 'operator', name: 'Grace' });
    const { id } = await openSession(pool, { tokenId: operator.id, secret: operator.token });
    return { id, hash: hashToken(id), holder: { session: hashToken(id).toString('base64url') } };
  };

  it('ends with the session, as do its links to files', async () => {
    const { id, holder } = await newSession();
    const token = await tokenOf(holder);
    const caller = (await bearer(token)) as BrowserCaller;
    expect(caller).toMatchObject({ kind: 'browser', userId: 'u', tokenId: parentId, holder });
    const claims = await links.verify((await links.make(newId(), caller)).token);
    if (claims === null || claims === 'expired') throw new Error('The link is not valid.');
    expect(await authenticator.findLinkCaller(claims, admission)).toMatchObject({ userId: 'u' });
    await endSession(pool, id);
    await watch.look();
    expect([await bearer(token), await authenticator.findLinkCaller(claims, admission)]).toEqual([null, null]);
  });

  it('counts as a use of the session', async () => {
    const { hash, holder } = await newSession();
    const age = `update operator_sessions set last_used_at = now() - interval '50 minutes' where hash = $1`;
    await pool.query(age, [hash]);
    expect(await bearer(await tokenOf(holder))).not.toBeNull();
    const recent = `select from operator_sessions where hash = $1 and last_used_at > now() - interval '40 minutes'`;
    await eventually(async () => (await pool.query(recent, [hash])).rowCount === 1, { what: 'the use is written' });
  });

  it('is refused if its holder is not an operator', async () => {
    const { id } = await newToken();
    for (const token of [id, parentId, newId()]) expect(await bearer(await tokenOf({ token }))).toBeNull();
  });

  it.each<[string, BrowserTokenHolder]>([
    ['session', { session: 'A'.repeat(43) }],
    ['operator token', { token: newId() }],
  ])('looks up an unknown %s only if the sender is admitted', async (_, holder) => {
    const refused = { beforeLookUp: () => Promise.reject(new Error('too many requests')) };
    // The process knows the service token.
    expect(await authenticator.authenticate(`Bearer ${await tokenOf((await newSession()).holder)}`)).not.toBeNull();
    const token = `Bearer ${await tokenOf(holder)}`;
    const asked = jest.spyOn(pool, 'query');
    await expect(authenticator.authenticate(token, refused)).rejects.toThrow('too many requests');
    expect(namesOf(asked).filter((name) => !name?.startsWith('touch'))).toEqual([]);
    asked.mockRestore();
  });
});
