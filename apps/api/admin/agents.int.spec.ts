import { createHash } from 'node:crypto';
import { AgentCatalogue } from '#agents';
import { eventually } from '#testing';
import { newId } from '#platform';
import { AdminUnderTest, type Given } from './admin-under-test.testing.ts';

let admin: AdminUnderTest;
let organizationId: string;
let personId: string;
beforeAll(async () => {
  admin = await AdminUnderTest.start();
  ({ organizationId, personId } = admin.api);
});
afterAll(() => admin.stop());

const manifestOf = (name: string, more: object = {}): Record<string, unknown> => ({
  name,
  harness: { name: 'echo' },
  ...more,
});
type Body = NonNullable<Given<'applyManifests'>['body']>;
const bodyOf = (manifests: object[], more: Partial<Body> = {}): Body => ({
  organizationId,
  manifests: manifests,
  ...more,
});
const apply = async (manifests: object[], more: Partial<Body> = {}) =>
  (await admin.do('applyManifests', { body: bodyOf(manifests, more) })).agents;
const applyOne = async (manifest: object, more: Partial<Body> = {}) => (await apply([manifest], more))[0]!;
const get = async (agentId: string) => admin.do('getAgent', { params: { agentId } });
const named = async (name: string) => (await admin.do('listAgents', { query: { organizationId, name } })).agents;
let made = 0;
const newName = (): string => `agent ${made++}`;

describe('applying manifests', () => {
  test('creates, updates, publishes on request, and leaves unchanged agents alone', async () => {
    const [one, two] = [newName(), newName()];
    const created = await apply([manifestOf(one), manifestOf(two)], { ownerPersonId: personId });
    expect(created.map(({ change, version, published }) => [change, version, published])).toEqual([
      ['created', 1, false],
      ['created', 1, false],
    ]);
    expect((await get(created[0]!.agentId!)).agent).toMatchObject({ ownerPersonId: personId, liveVersion: 1 });
    const changed = await apply([manifestOf(one, { description: 'More.' }), manifestOf(two)], { publish: true });
    expect(changed.map(({ change, version, published }) => [change, version, published])).toEqual([
      ['updated', 2, true],
      ['unchanged', 1, true],
    ]);
    expect(changed.map(({ agentId }) => agentId)).toEqual(created.map(({ agentId }) => agentId));
    expect(changed[0]!.diff).toMatch(/^\+description: More\.$/m);
    // A published agent stays published.
    expect(await applyOne(manifestOf(one))).toMatchObject({ change: 'updated', version: 3, published: true });
    const { versions } = await admin.do('listVersions', { params: { agentId: created[0]!.agentId! } });
    expect(versions.map(({ version, live }) => [version, live])).toEqual([
      [3, true],
      [2, false],
      [1, false],
    ]);
    const page = { params: { agentId: created[0]!.agentId! }, query: { before: '3', limit: '1' } };
    expect((await admin.do('listVersions', page as never)).versions).toEqual([versions[1]]);
  });

  test('applies none of three if one is invalid or refused', async () => {
    const names = [newName(), newName(), newName()];
    const wrong = names.map((name, i) => manifestOf(name, i === 1 ? { harness: { name: 'echo', pauseMs: 'x' } } : {}));
    const before = await admin.rowCounts();
    expect(await admin.refused('applyManifests', { body: bodyOf(wrong) })).toEqual([
      'invalid_request',
      expect.stringMatching(/^manifests\.1\.harness/),
    ]);
    const expectedVersions = { [names[2]!]: 1 };
    const body = bodyOf(
      names.map((name) => manifestOf(name)),
      { expectedVersions },
    );
    expect((await admin.refused('applyManifests', { body }))[0]).toBe('conflict');
    expect(await admin.rowCounts()).toEqual(before);
  });

  test('returns a conflict if an agent is not at the expected version', async () => {
    const name = newName();
    const at = (version: number) => ({ expectedVersions: { [name]: version } });
    await applyOne(manifestOf(name), at(0));
    expect(await admin.refused('applyManifests', { body: bodyOf([manifestOf(name)], at(0)) })).toEqual([
      'conflict',
      `"${name}" is at version 1, not 0; apply the manifest again.`,
    ]);
    expect(await applyOne(manifestOf(name, { description: '2' }), at(1))).toMatchObject({ version: 2 });
    // A name that every object has as a property is not mistaken for an expected version.
    expect(await applyOne(manifestOf('constructor'), at(9))).toMatchObject({ change: 'created' });
  });

  test('returns the same result in a dry run, and changes nothing', async () => {
    const [old, fresh] = [newName(), newName()];
    await applyOne(manifestOf(old));
    const manifests = [manifestOf(old, { instructions: 'Be brief.\nBe kind.' }), manifestOf(fresh)];
    const before = await admin.rowCounts();
    const dry = await apply(manifests, { dryRun: true, publish: true });
    expect(await admin.rowCounts()).toEqual(before);
    expect(dry[1]!.agentId).toBeNull();
    const wet = await apply(manifests, { publish: true });
    expect(dry.map((each, i) => ({ ...each, agentId: wet[i]!.agentId }))).toEqual(wet);
  });

  test('by parallel requests creates one agent and one version', async () => {
    const name = newName();
    const all = await Promise.all(Array.from({ length: 6 }, () => applyOne(manifestOf(name), { publish: true })));
    expect(all.map(({ change }) => change).toSorted()).toEqual(['created', ...Array<string>(5).fill('unchanged')]);
    expect(await named(name)).toMatchObject([{ liveVersion: 1, published: true }]);
    const more = await Promise.all([1, 2, 3, 4].map((i) => applyOne(manifestOf(name, { description: `${i}` }))));
    expect(more.map(({ version }) => version).toSorted()).toEqual([2, 3, 4, 5]);
  });

  test('returns a conflict if two agents have the name, and ignores deleted ones', async () => {
    const name = newName();
    const ids = [await admin.api.newAgent({}, { name }), await admin.api.newAgent({}, { name })];
    const [code, message] = await admin.refused('applyManifests', { body: bodyOf([manifestOf(name)]) });
    expect([code, ids.every((id) => message.includes(id))]).toEqual(['conflict', true]);
    for (const agentId of ids) await admin.do('deleteAgent', { params: { agentId } });
    const { agentId, change } = await applyOne(manifestOf(name));
    expect([change, ids.includes(agentId!)]).toEqual(['created', false]);
    expect((await named(name)).map(({ id }) => id)).toEqual([agentId]);
    const query = { name, deleted: 'true' as const };
    expect((await admin.do('listAgents', { query })).agents.map(({ id }) => id)).toEqual(ids.toReversed());
  });

  test('creates separate agents of one name in two organizations', async () => {
    const { organization } = await admin.do('createOrganization', { body: { name: 'Other' } });
    const name = newName();
    const [here, there] = [
      await applyOne(manifestOf(name)),
      await applyOne(manifestOf(name), { organizationId: organization.id }),
    ];
    expect(here.agentId).not.toBe(there.agentId);
  });
});

describe('rolling back an agent', () => {
  async function threeVersions(): Promise<string> {
    const name = newName();
    for (const description of ['one', 'two']) await applyOne(manifestOf(name, { description }));
    return (await applyOne(manifestOf(name, { description: 'three' }))).agentId!;
  }
  const rollBack = (agentId: string, body: { version?: number } = {}) =>
    admin.do('rollBackAgent', { params: { agentId }, body });

  test('creates a new version from the previous or the given one', async () => {
    const agentId = await threeVersions();
    const { agent, diff } = await rollBack(agentId);
    expect([agent.liveVersion, agent.description]).toEqual([4, 'two']);
    expect(diff).toMatch(/^-description: three\n\+description: two$/m);
    expect((await rollBack(agentId, { version: 1 })).agent).toMatchObject({ liveVersion: 5, description: 'one' });
    const [five, one] = await Promise.all(
      [5, 1].map((version) => admin.do('getVersion', { params: { agentId, version: `${version}` } })),
    );
    expect(five!.manifest).toEqual(one!.manifest);
    expect((await get(agentId)).manifest).toEqual(five!.manifest);
  });

  test('is refused for the live version, an equal version and an unknown version', async () => {
    const agentId = await threeVersions();
    const { agent } = await rollBack(agentId);
    const refusedTo = async (version?: number) =>
      (await admin.refused('rollBackAgent', { params: { agentId }, body: { version } }))[0];
    expect([await refusedTo(4), await refusedTo(2), await refusedTo(9)]).toEqual(['conflict', 'conflict', 'not_found']);
    expect((await get(agentId)).agent).toEqual(agent);
  });
});

describe('access to an agent', () => {
  const status = async (agentId: string, token = admin.api.token) =>
    (await admin.api.get(`/agents/${agentId}`, { token })).status;

  test('follows publishing and unpublishing', async () => {
    const { agentId } = await applyOne(manifestOf(newName()));
    const params = { agentId: agentId! };
    expect(await status(agentId!)).toBe(409);
    expect((await admin.do('publishAgent', { params })).agent.published).toBe(true);
    await eventually(async () => (await status(agentId!)) === 200, { what: 'callers reach it' });
    expect((await admin.do('unpublishAgent', { params })).agent.published).toBe(false);
    await eventually(async () => (await status(agentId!)) === 409, { what: 'callers are refused' });
  });

  test('follows invitations, and stores access, owner and apiEnabled', async () => {
    const agentId = (await applyOne(manifestOf(newName()), { publish: true })).agentId!;
    const { personId: bobId, token } = await admin.api.newPerson();
    const { agent } = await admin.do('updateAgent', { params: { agentId }, body: { access: 'invited' } });
    expect([agent.access, agent.apiEnabled, agent.ownerPersonId]).toEqual(['invited', true, null]);
    expect(await status(agentId, token)).toBe(403);
    await admin.do('invitePerson', { params: { agentId }, body: { personId: bobId } });
    expect((await get(agentId)).agent.invitedPersonIds).toEqual([bobId]);
    await eventually(async () => (await status(agentId, token)) === 200, { what: 'the invited person has access' });
    await admin.do('uninvitePerson', { params: { agentId, personId: bobId } });
    await eventually(async () => (await status(agentId, token)) === 403, { what: 'the uninvited person has none' });
    const owned = await admin.do('updateAgent', { params: { agentId }, body: { ownerPersonId: bobId } });
    expect(owned.agent.ownerPersonId).toBe(bobId);
    await admin.do('updateAgent', { params: { agentId }, body: { apiEnabled: false, ownerPersonId: null } });
    expect((await get(agentId)).agent).toMatchObject({ apiEnabled: false, ownerPersonId: null });
  });

  test('keeps parallel changes of different fields', async () => {
    const agentId = (await applyOne(manifestOf(newName()))).agentId!;
    const params = { agentId };
    await Promise.all([
      admin.do('updateAgent', { params, body: { access: 'invited' } }),
      admin.do('updateAgent', { params, body: { apiEnabled: false } }),
      admin.do('updateAgent', { params, body: { ownerPersonId: personId } }),
      admin.do('publishAgent', { params }),
    ]);
    const kept = { access: 'invited', apiEnabled: false, ownerPersonId: personId, published: true };
    expect((await get(agentId)).agent).toMatchObject(kept);
  });
});

test('refuses manifests that name what this installation does not allow, and stores nothing', async () => {
  const name = newName();
  const model = { provider: 'openai-compatible', name: 'm', baseUrl: 'https://x', apiKey: { env: 'DATABASE_URL' } };
  const optional = { required: false, headers: { Cookie: { file: '/etc/passwd' } } };
  const toolServers = [
    { name: 'web', url: 'https://x', ...optional },
    { name: 'shell', command: 'sh', network: true },
  ];
  const manifests = [manifestOf(newName()), manifestOf(name, { harness: { name: 'model' }, model, toolServers })];
  const [code, message] = await admin.refused('applyManifests', { body: bodyOf(manifests) });
  expect(code).toBe('invalid_request');
  expect(message.split('; ')).toEqual([
    'manifests.1.model.apiKey: The variable DATABASE_URL belongs to the service: no manifest may name it.',
    'manifests.1.toolServers.0.headers.Cookie: The file /etc/passwd is not allowed: add it or its folder to MANIFEST_FILES.',
    'manifests.1.toolServers.1.command: The command "sh" is not allowed: add its absolute path to TOOL_SERVER_COMMANDS.',
    'manifests.1.toolServers.1.network: Tool servers have no network here: set TOOL_SERVER_NETWORK=on to give them the worker’s.',
  ]);
  expect(await named(name)).toEqual([]);
});

test('refuses a manifest that is too large to be checked', async () => {
  const manifests = [{ ...manifestOf(newName()), unknown: Array(20_000).fill(0) }];
  expect(await admin.refused('applyManifests', { body: bodyOf(manifests) })).toEqual([
    'invalid_request',
    'manifests.0: is too large',
  ]);
});

test('shows missing optional credentials of an Agent as warnings, and its tool policies', async () => {
  const tools = [{ pattern: 'web__*', policy: 'ask' }];
  const web = { name: 'web', url: 'https://x', headers: { Cookie: { env: 'ABSENT_API_KEY' } }, required: false };
  const { agentId } = await applyOne(manifestOf(newName(), { tools, toolServers: [web] }));
  expect(await get(agentId!)).toMatchObject({
    readiness: [],
    warnings: [
      {
        message: 'a fallback model, or a tool server that is not required, has no credential',
        detail: 'toolServers.0.headers.Cookie: The variable ABSENT_API_KEY is not set, or is empty.',
      },
    ],
    toolPolicies: tools,
    toolServers: [{ name: 'web', required: false }],
  });
  const required = await applyOne(manifestOf(newName(), { toolServers: [{ ...web, required: true }] }));
  expect(await get(required.agentId!)).toMatchObject({ readiness: [{}], warnings: [], toolPolicies: [] });
});

test('shows as a warning which tools of a server were left out', async () => {
  const { agentId } = await applyOne(manifestOf(newName(), { toolServers: [{ name: 'web', url: 'https://x' }] }));
  await admin.pool.query(`insert into tool_server_warnings values ($1, 'web', '{It has no name.}')`, [agentId]);
  expect(await get(agentId!)).toMatchObject({
    readiness: [],
    warnings: [
      {
        message: 'some tools of a tool server were left out',
        detail: 'toolServers.0 (web): It has no name.',
      },
    ],
  });
});

test('readiness names a missing harness in the answers and in the doctor', async () => {
  const name = newName();
  const missing = manifestOf(name, { harness: { name: 'absent' } });
  const applied = await applyOne(missing, { publish: true });
  const detail = 'There is no harness "absent".';
  expect(applied.readiness).toMatchObject([{ detail }]);
  expect((await get(applied.agentId!)).readiness).toEqual(applied.readiness);
  const { checks } = await admin.do('runDoctor');
  const found = checks.find((check) => check.name === 'agents')!;
  expect([found.status, found.message.includes(`${name} (${applied.agentId}): ${detail}`)]).toEqual(['warning', true]);
});

test('a Run keeps the agent version that it was created with', async () => {
  const name = newName();
  const agentId = (await applyOne(manifestOf(name), { publish: true })).agentId!;
  const threadId = await admin.api.newThread({ agentId, text: 'hi' });
  const { runs } = await admin.do('getThread', { params: { threadId } });
  await applyOne(manifestOf(name, { description: 'newer' }));
  await admin.api.startRun(threadId, runs[0]!.id);
  const queued = (await admin.lines('exportThread', { params: { threadId } })).find(
    ({ type }) => type === 'run.queued',
  );
  expect(queued!.data).toMatchObject({ agentVersion: 1 });
  const versions = await Promise.all(
    [1, 2].map((version) => admin.api.app.get(AgentCatalogue).version(agentId, version)),
  );
  expect(versions.map((manifest) => manifest?.description)).toEqual(['', 'newer']);
});

describe('deleting an agent', () => {
  test('terminates its Threads, which return 404 to callers and stay readable for operators', async () => {
    const agentId = (await applyOne(manifestOf(newName()), { publish: true })).agentId!;
    const [idle, busy] = [await admin.api.newThread({ agentId }), await admin.api.newThread({ agentId, text: 'hi' })];
    const runId = (await admin.do('listRuns', { query: { threadId: busy } })).runs[0]!.id;
    await admin.api.startRun(busy, runId);
    const answer = await admin.do('deleteAgent', { params: { agentId } });
    expect([answer.ended, answer.complete, answer.agent.deletedAt]).toEqual([2, true, expect.any(String)]);
    for (const threadId of [idle, busy]) {
      const { thread } = await admin.do('getThread', { params: { threadId } });
      expect(thread.status).toBe('TERMINATED');
      const types = (await admin.lines('exportThread', { params: { threadId } })).map(({ type }) => type);
      expect(types).toContain('thread.terminated');
      await eventually(async () => (await admin.api.get(`/threads/${threadId}`)).status === 404, {
        what: 'callers get 404',
      });
    }
    expect((await admin.do('getRun', { params: { runId } })).run).toMatchObject({ status: 'cancelled', work: null });
    expect((await admin.refused('retryRun', { params: { runId } }))[0]).toBe('conflict');
    await admin.do('deleteThread', { params: { threadId: busy } });
    expect((await admin.refused('getThread', { params: { threadId: busy } }))[0]).toBe('not_found');
    expect((await admin.api.get(`/agents/${agentId}`)).status).toBe(404);
    expect((await get(agentId)).agent).toEqual(answer.agent);
  });

  test('returns 200 and 409 to two parallel requests', async () => {
    const agentId = (await applyOne(manifestOf(newName()))).agentId!;
    const both = await Promise.all([1, 2].map(() => admin.send('deleteAgent', { params: { agentId } })));
    expect(both.map(({ status }) => status).toSorted()).toEqual([200, 409]);
  });
});

test('lists organizations, people and agents by filters and in pages', async () => {
  const name = `of ${createHash('sha1').update(newId()).digest('hex')}`;
  const organizations: string[] = [];
  for (let i = 0; i < 3; i++)
    organizations.push((await admin.do('createOrganization', { body: { name } })).organization.id);
  organizations.reverse();
  const first = await admin.do('listOrganizations', { query: { name, limit: 2 } });
  expect(first.organizations.map(({ id }) => id)).toEqual(organizations.slice(0, 2));
  const second = await admin.do('listOrganizations', { query: { name, limit: 2, cursor: first.nextCursor! } });
  expect([second.organizations.map(({ id }) => id), second.nextCursor]).toEqual([organizations.slice(2), null]);
  const body = { name, organizationIds: organizations.slice(0, 1) };
  const { person } = await admin.do('createPerson', { body });
  expect((await admin.do('listPeople', { query: { name } })).people).toEqual([person]);
  expect((await admin.do('listPeople', { query: { organizationId: organizations[0]! } })).people).toEqual([person]);
  expect((await admin.do('listPeople', { query: { name, organizationId: organizations[1]! } })).people).toEqual([]);
  const agents = await admin.do('listAgents', { query: { limit: 1 } });
  const next = await admin.do('listAgents', { query: { limit: 1, cursor: agents.nextCursor! } });
  expect(next.agents[0]!.id < agents.agents[0]!.id).toBe(true);
  expect((await admin.do('listAgents', { query: { organizationId: organizations[0]! } })).agents).toEqual([]);
});
