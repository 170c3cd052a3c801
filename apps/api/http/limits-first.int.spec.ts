import { randomBytes } from 'node:crypto';
import {
  BrowserTokens,
  FileLinks,
  makeSessionSecrets,
  makeToken,
  SignedTokens,
  type BrowserTokenHolder,
} from '#access';
import { newId, parseSigningKeys, PolicyWatch } from '#platform';
import { isNight } from '#testing';
import { ApiUnderTest, type Reply } from '../api-under-test.testing.ts';
import { recordStatements } from '../sent-statements.testing.ts';

// Real: HTTP, PostgreSQL.

const KEYS = `k:${'a'.repeat(43)}=`;
const LIMIT = isNight ? 20 : 6;
/** The statements that look up credentials. */
const LOOK_UPS = ['find-token', 'find-session'];

let api: ApiUnderTest;
let watch: PolicyWatch;
let sent: string[];
/** Each test has its own addresses, because each has its own count. */
let tests = 0;
const at = (host: number): string => `192.0.${tests}.${host}`;

beforeAll(async () => {
  sent = recordStatements();
  api = await ApiUnderTest.start({
    settings: { RATE_LIMIT_PER_PERSON_TOKEN: LIMIT, TRUSTED_PROXIES: 1, BROWSER_TOKEN_KEYS: KEYS },
  });
  watch = api.app.get(PolicyWatch);
});
beforeEach(async () => {
  tests++;
  // Notices the changes of earlier tests before this test starts.
  await watch.look();
  sent.length = 0;
});
afterAll(async () => {
  await api.stop();
  jest.restoreAllMocks();
});

const lookUps = () => sent.filter((statement) => LOOK_UPS.includes(statement)).length;
const counts = () => sent.filter((statement) => statement === 'count-request').length;
const from = (address: string) => ({ 'x-forwarded-for': address });

async function asPerson(token: string, address = at(1)): Promise<Reply> {
  return api.get(`/agents/${api.agentId}`, { token, headers: from(address) });
}

async function asOperator(address: string, headers: Record<string, string>): Promise<Response> {
  const url = new URL('/admin/v1/agents', api.url);
  return fetch(url, { headers: { ...headers, ...from(address) } });
}

const signed = new SignedTokens(parseSigningKeys(KEYS));
const claims = { userId: 'ada', agentId: null, threadId: null, verbs: ['read'], origins: null };

/** Returns a browser token with a valid signature. */
const browserTokenOf = async (parentId: string, more: { userId?: string; holder?: BrowserTokenHolder } = {}) =>
  (await new BrowserTokens(signed).make({ ...claims, parentId, ...more }, 60)).token;

/** Fetches a file by a link with a valid signature. */
async function byLinkOf(parentId: string, address: string): Promise<number> {
  const caller = { kind: 'service', tokenId: parentId } as Parameters<FileLinks['make']>[1];
  const { token } = await new FileLinks(signed).make(newId(), caller);
  return (await fetch(new URL(`/file-links/${token}`, api.url), { headers: from(address) })).status;
}

const attacks = [
  {
    what: 'tokens',
    attempt: async (address: string) => (await asPerson(makeToken('person'), address)).status,
    refused: 401,
  },
  {
    what: 'browser tokens of missing service tokens',
    attempt: async (address: string) => (await asPerson(await browserTokenOf(newId()), address)).status,
    refused: 401,
  },
  {
    what: 'file links of missing tokens',
    attempt: (address: string) => byLinkOf(newId(), address),
    refused: 404,
  },
  {
    what: 'session cookies',
    refused: 401,
    attempt: async (address: string) => {
      // A cookie that was not made with the key of the page causes no look-up.
      const { id, pageKey } = makeSessionSecrets();
      return (await asOperator(address, { cookie: `spool_session=${id}`, 'spool-page-key': pageKey })).status;
    },
  },
];

it.each(attacks)('random $what beyond the limit of their address cause no look-up', async ({ attempt, refused }) => {
  const statuses: number[] = [];
  for (let i = 0; i < LIMIT; i++) statuses.push(await attempt(at(7)));
  expect(statuses).toEqual(Array(LIMIT).fill(refused));
  expect(lookUps()).toBe(LIMIT);
  sent.length = 0;
  for (let i = 0; i < 3 * LIMIT; i++) expect(await attempt(at(7))).toBe(429);
  expect([lookUps(), counts()]).toEqual([0, 0]);
  // Another address has its own count.
  expect(await attempt(at(8))).toBe(refused);
});

it.each(attacks)(
  'random $what sent concurrently cause no more look-ups than the limit allows',
  async ({ attempt, refused }) => {
    const statuses = await Promise.all(Array.from({ length: 3 * LIMIT }, () => attempt(at(7))));
    expect(statuses.filter((status) => status === refused)).toHaveLength(LIMIT);
    expect(lookUps()).toBe(LIMIT);
  },
);

it('a repeated wrong token is looked up once', async () => {
  const token = makeToken('service');
  for (let i = 0; i < 5; i++) expect((await asPerson(token)).status).toBe(401);
  expect(lookUps()).toBe(1);
});

it('browser tokens of ended sessions beyond the limit of their address cause no look-up', async () => {
  const organization = { organizationId: api.organizationId, agentIds: [api.agentId] };
  const { id } = await api.access.mintToken({ kind: 'service', name: 's', ...organization });
  await watch.look();
  expect((await asPerson(await browserTokenOf(id))).status).toBe(200);
  sent.length = 0;
  const attempt = async (): Promise<number> => {
    const holder = { session: randomBytes(32).toString('hex') };
    return (await asPerson(await browserTokenOf(id, { holder }))).status;
  };
  for (let i = 0; i < LIMIT; i++) expect(await attempt()).toBe(401);
  for (let i = 0; i < LIMIT; i++) expect(await attempt()).toBe(429);
  expect(lookUps()).toBe(LIMIT);
});

it('tokens and links of a revoked service token cause one look-up together', async () => {
  const organization = { organizationId: api.organizationId, agentIds: [api.agentId] };
  const { id, token } = await api.access.mintToken({ kind: 'service', name: 's', ...organization });
  const browser = await browserTokenOf(id);
  expect((await asPerson(browser)).status).toBe(200);
  await api.access.revokeToken(id);
  await watch.look();
  sent.length = 0;
  expect((await asPerson(browser)).status).toBe(401);
  for (const userId of ['bob', 'eve']) expect((await asPerson(await browserTokenOf(id, { userId }))).status).toBe(401);
  expect(await byLinkOf(id, at(1))).toBe(404);
  expect(lookUps()).toBe(1);
  expect((await asPerson(token)).status).toBe(401);
});

it('admits a remembered token behind an address whose limit is used up, also after a change of the policy', async () => {
  const { token } = await api.newPerson();
  expect((await asPerson(token)).status).toBe(200);
  for (let i = 0; i < LIMIT; i++) await asPerson(makeToken('person'));
  expect((await asPerson(makeToken('person'))).status).toBe(429);
  expect((await asPerson(token)).status).toBe(200);
  await api.newPerson();
  // The process reads every remembered credential again.
  await watch.look();
  expect((await asPerson(token)).status).toBe(200);
});

it('refuses a valid token that is not remembered beyond the limit of its address, but not from another one', async () => {
  const { token } = await api.newPerson();
  for (let i = 0; i < LIMIT; i++) await asPerson(makeToken('person'));
  const { status, headers } = await asPerson(token);
  expect(status).toBe(429);
  expect(Number(headers.get('retry-after'))).toBeGreaterThan(0);
  expect((await asPerson(token, at(9))).status).toBe(200);
  // The process remembers it from now on.
  expect((await asPerson(token)).status).toBe(200);
});

it('returns the count to the address once a token proves valid', async () => {
  for (let i = 0; i < 2 * LIMIT; i++) {
    const { token } = await api.newPerson();
    expect((await asPerson(token)).status).toBe(200);
  }
  const { token: operator } = await api.access.mintToken({ kind: 'operator', name: 'o' });
  expect((await asOperator(at(1), { authorization: `Bearer ${operator}` })).status).toBe(200);
  for (let i = 0; i < LIMIT; i++) expect((await asPerson(makeToken('person'))).status).toBe(401);
  expect((await asPerson(makeToken('person'))).status).toBe(429);
});

it('counts many first requests of one token as one look-up', async () => {
  const organization = { organizationId: api.organizationId, agentIds: [api.agentId] };
  const { token } = await api.access.mintToken({ kind: 'service', name: 's', ...organization });
  const replies = await Promise.all(Array.from({ length: 5 * LIMIT }, () => asPerson(token)));
  expect(replies.map(({ status }) => status)).toEqual(Array(5 * LIMIT).fill(200));
  // A policy change in the meantime adds one look-up.
  expect(lookUps()).toBeLessThan(LIMIT);
});

it('forgets a refusal when the policy changes', async () => {
  const { id, token } = await api.access.mintToken({ kind: 'person', personId: api.personId, name: 'n' });
  await api.access.revokeToken(id);
  expect((await asPerson(token)).status).toBe(401);
  await api.pool.query('update tokens set revoked_at = null where id = $1', [id]);
  await watch.look();
  expect((await asPerson(token)).status).toBe(200);
});
