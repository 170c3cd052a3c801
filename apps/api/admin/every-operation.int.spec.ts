import { adminOperations, type AdminOperation, type AdminOperationName } from '#contract';
import { newId } from '#platform';
import { AdminUnderTest, type Sent } from './admin-under-test.testing.ts';
import { CASES, type World } from './operation-cases.testing.ts';

// Tests of all operations. A new operation fails here until it is in the table.

let admin: AdminUnderTest;
let world: World;
beforeAll(async () => {
  admin = await AdminUnderTest.start();
  world = await makeWorld();
});
afterAll(() => admin.stop());

async function makeWorld(): Promise<World> {
  const { api } = admin;
  const { organizationId, personId, agentId } = api;
  const { id: tokenId } = await api.access.mintToken({ kind: 'person', personId, name: 'theirs' });
  const threadId = await api.newThread({ text: 'hi' });
  const runId = (await api.get(`/threads/${threadId}`)).json.run.id;
  const requestId = await api.ask(threadId, runId);
  const inline = { name: 'a.txt', contentType: 'text/plain', contentBase64: 'aGk=' };
  const attached = await api.post(`/threads/${threadId}/files`, { body: inline });
  const { file } = attached.json as unknown as { file: { id: string } };
  const planned = await admin.do('planBulkAction', { body: { action: 'cancel', filter: { agentId } } });
  const bulkActionId = planned.bulkAction.id;
  const ids = { organizationId, personId, agentId, tokenId, threadId, runId, requestId, bulkActionId };
  return { ...ids, fileId: file.id, absent: newId() };
}

const names = Object.keys(adminOperations) as AdminOperationName[];
const operationOf = (name: AdminOperationName): AdminOperation => adminOperations[name];

/** Returns a value of the world for each path parameter. */
function paramsIn(name: AdminOperationName): Record<string, string> {
  const there: Record<string, string> = { ...world, version: '1' };
  return Object.fromEntries(Object.keys(operationOf(name).params.shape).map((key) => [key, there[key]!]));
}

function sentTo(name: AdminOperationName): Sent {
  return { params: paramsIn(name), ...CASES[name].given?.(world) };
}

/** Does work that must change no table. */
async function unchanged(work: () => Promise<void>): Promise<void> {
  const before = await admin.rowCounts();
  await work();
  expect(await admin.rowCounts()).toEqual(before);
}

it('the table has a case for each operation', () => {
  expect(Object.keys(CASES).toSorted()).toEqual(names.toSorted());
  const takingBody = names.filter((name) => operationOf(name).body !== null);
  expect(takingBody.filter((name) => CASES[name].given === undefined)).toEqual([]);
});

describe('authorization', () => {
  const tokens: Record<string, string | null> = { none: null, nonsense: 'spool_op_x' };
  beforeAll(async () => {
    const { api } = admin;
    const { organizationId, agentId } = world;
    tokens['person'] = api.token;
    const service = {
      kind: 'service',
      organizationId,
      agentIds: [agentId],
      name: 's',
      allowAttribution: true,
    } as const;
    tokens['service'] = (await api.access.mintToken(service)).token;
    const operator = await api.access.mintToken({ kind: 'operator', name: 'gone' });
    await api.access.revokeToken(operator.id);
    tokens['revoked'] = operator.token;
    const past = { kind: 'operator', name: 'past', expiresAt: new Date(Date.now() - 1_000) } as const;
    tokens['expired'] = (await api.access.mintToken(past)).token;
  });

  it.each(names)('%s refuses all callers except operators', (name) =>
    unchanged(async () => {
      const codes: Record<string, string> = {};
      for (const [kind, token] of Object.entries(tokens)) {
        [codes[kind] = ''] = await admin.refused(name, { ...sentTo(name), token });
      }
      expect(codes).toEqual({
        none: 'unauthenticated',
        nonsense: 'unauthenticated',
        person: 'forbidden',
        service: 'forbidden',
        revoked: 'unauthenticated',
        expired: 'unauthenticated',
      });
    }),
  );
});

it.each(names)('%s returns not_found for each unknown id', (name) =>
  unchanged(async () => {
    const sent = sentTo(name);
    const params = Object.keys(sent.params ?? {}).filter((key) => key !== 'version');
    const unknown = [
      ...params.map((key): Sent => ({ ...sent, params: { ...sent.params, [key]: world.absent } })),
      ...(CASES[name].unknown?.(world) ?? []).map((more): Sent => ({ ...sent, ...more })),
    ];
    for (const each of unknown) {
      const [code, message] = await admin.refused(name, each);
      expect([name, each, code, message]).toEqual([name, each, 'not_found', expect.stringMatching(/\w/)]);
    }
  }),
);

it.each(names)('%s returns invalid_request with the name of the invalid field', (name) =>
  unchanged(async () => {
    const { query, body } = operationOf(name);
    const sent = sentTo(name);
    const wrong: [Sent, string][] = [...(CASES[name].wrong?.(world) ?? [])];
    for (const key of Object.keys(sent.params ?? {})) {
      wrong.push([{ params: { ...sent.params, [key]: "'; drop table agents; --" } }, `path.${key}: `]);
    }
    for (const key of Object.keys(query.shape).filter((each) => each === 'cursor' || /Id$|^after$/.test(each))) {
      if (key !== 'actorId' && key !== 'targetId' && key !== 'userId') {
        wrong.push([{ query: { [key]: 'x' } }, `query.${key}: must be a ULID`]);
      }
    }
    if ('limit' in query.shape) {
      for (const limit of [0, 101, -1, '1e1', '']) wrong.push([{ query: { limit } }, 'query.limit: must be ']);
    }
    if (body !== null) {
      wrong.push([{ body: { ...(sent.body as object), surprise: 1 } }, 'Unrecognized key: "surprise"']);
      wrong.push([{ body: [] }, 'body: ']);
      if (!body.safeParse(undefined).success) wrong.push([{ body: undefined }, 'body: ']);
    }
    for (const [more, place] of wrong) {
      const refusal = await admin.refused(name, { ...sent, ...more });
      expect([name, more, ...refusal]).toEqual([name, more, 'invalid_request', expect.stringContaining(place)]);
    }
    if (body === null) return;
    expect((await admin.refused(name, { ...sent, body: '{"name":' }))[0]).toBe('invalid_json');
    const [url, init] = admin.request(name, { ...sent, body: 'name=x' });
    const form = { ...(init.headers as object), 'content-type': 'application/x-www-form-urlencoded' };
    expect((await fetch(url, { ...init, headers: form })).status).toBe(415);
  }),
);

it('the admin API returns 413 for a body above the limit, and reads one just below it', async () => {
  const limit = 8 * 1024 * 1024;
  const body = (length: number): string => JSON.stringify({ name: 'x', more: 'y'.repeat(length) });
  const { status } = await admin.send('createOrganization', { body: body(limit) });
  expect(status).toBe(413);
  expect(await admin.refused('createOrganization', { body: body(limit - 100) })).toEqual([
    'invalid_request',
    'body: Unrecognized key: "more"',
  ]);
});

it('the admin API counts requests of operators, and returns 429 above the limit', async () => {
  const limited = await AdminUnderTest.start({ RATE_LIMIT_PER_PERSON_TOKEN: 3, RATE_LIMIT_STORE: 'process' });
  const statuses: unknown[] = [];
  for (let i = 0; i < 4; i++) {
    const { status, headers } = await limited.send('getQueue', {});
    statuses.push([status, headers.get('ratelimit-remaining'), headers.get('retry-after') !== null]);
  }
  expect(statuses).toEqual([
    [200, '2', false],
    [200, '1', false],
    [200, '0', false],
    [429, '0', true],
  ]);
  await limited.stop();
});
