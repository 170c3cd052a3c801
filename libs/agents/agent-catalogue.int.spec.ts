import { ulid } from 'ulid';
import { openDatabase, openPolicyVersions, PolicyWatch, type Database } from '#platform';
import { createTestDatabase, type TestDatabase } from '#testing';
import { AgentCatalogue } from './agent-catalogue.ts';
import { echoHarness } from './echo/echo-harness.ts';
import { harnessesByName } from './harness.ts';
import { agentManifestSchema, runLimits } from './manifest.ts';
import { createAgent, publishAgentVersion } from './change-agents.ts';
import { noteToolWarnings } from './tool-warnings.ts';

let testDatabase: TestDatabase;
let database: Database;
/** Looks when told to, and is trusted for so long as a test may take. */
let watch: PolicyWatch;
const organizationId = ulid();
const manifest = { name: 'Helper', description: 'Helps.', harness: { name: 'echo' } };

beforeAll(async () => {
  testDatabase = await createTestDatabase();
  database = await openDatabase({ url: testDatabase.url, applicationName: 'agents spec', maxConnections: 6 });
  watch = new PolicyWatch({
    versions: openPolicyVersions(testDatabase.url),
    now: () => ({ monotonic: 0, wall: 0 }),
  });
  await watch.look();
  await database.pool.query('insert into organizations (id, name) values ($1, $2)', [organizationId, 'Specs']);
});
afterAll(async () => {
  await watch.stop();
  await database.close();
  await testDatabase.drop();
});

function makeCatalogue() {
  const harnesses = harnessesByName([echoHarness()]);
  return new AgentCatalogue({ pool: database.pool, watch, harnesses });
}

it('knows a new agent, and its live version once it is published', async () => {
  const catalogue = makeCatalogue();
  const agentId = await createAgent(database.pool, { organizationId, manifest });
  const agent = { id: agentId, organizationId, ownerPersonId: null, name: 'Helper', description: 'Helps.' };
  const limits = { maxRuns: null, organizationMaxRuns: null };
  const state = { kind: 'cattle', access: 'organization', apiEnabled: true, deleted: false, ...limits };
  expect(await catalogue.find(agentId)).toEqual({ ...agent, ...state, published: false, liveVersion: null });

  expect(await publishAgentVersion(database.pool, agentId, { ...manifest, kind: 'pet', name: 'Renamed' })).toBe(1);
  const published = { ...agent, ...state, name: 'Renamed', kind: 'pet', published: true, liveVersion: 1 };
  expect(await makeCatalogue().find(agentId)).toEqual(published);
});

it('reads an agent once until the watch sees a change, and one that is made after it was asked for at once', async () => {
  const catalogue = makeCatalogue();
  const agentId = await createAgent(database.pool, { organizationId, manifest });
  const asked = jest.spyOn(database.pool, 'query');
  for (let i = 0; i < 10; i++) expect((await catalogue.find(agentId))?.apiEnabled).toBe(true);
  expect(asked).toHaveBeenCalledTimes(1);
  asked.mockRestore();
  await database.pool.query('update agents set api_enabled = false where id = $1', [agentId]);
  expect((await catalogue.find(agentId))?.apiEnabled).toBe(true);
  await watch.look();
  expect((await catalogue.find(agentId))?.apiEnabled).toBe(false);

  const later = ulid();
  expect(await catalogue.find(later)).toBeNull();
  await database.pool.query(`insert into agents (id, organization_id, name, kind) values ($1, $2, 'Later', 'pet')`, [
    later,
    organizationId,
  ]);
  expect((await catalogue.find(later))?.name).toBe('Later');
});

it('gives each version its number, however many are published at once', async () => {
  const agentId = await createAgent(database.pool, { organizationId, manifest });
  const publish = () => publishAgentVersion(database.pool, agentId, manifest);
  const versions = await Promise.all(Array.from({ length: 8 }, publish));
  expect(versions.toSorted()).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
  expect((await makeCatalogue().find(agentId))?.liveVersion).toBe(8);
  expect(await publishAgentVersion(database.pool, ulid(), manifest)).toBeNull();
});

it('reads a version with its defaults filled in', async () => {
  const agentId = await createAgent(database.pool, { organizationId, manifest });
  await publishAgentVersion(database.pool, agentId, { ...manifest, limits: { workMs: 5 } });
  const catalogue = makeCatalogue();
  const version = await catalogue.version(agentId, 1);
  expect(version).toMatchObject({ name: 'Helper', whenBusy: 'reject', tools: [], kind: 'cattle' });
  const day = 24 * 60 * 60 * 1000;
  const limits = { queueMs: 600_000, workMs: 5, waitMs: 7 * day, maxLosses: 3, providerRetryMs: 900_000 };
  expect(version && runLimits(version)).toEqual(limits);
  expect(await catalogue.version(agentId, 1)).toBe(version);
  expect(await catalogue.version(agentId, 2)).toBeNull();
});

it('says why an agent cannot run: to callers that, to operators what', async () => {
  const catalogue = makeCatalogue();
  const agentId = await createAgent(database.pool, { organizationId, manifest });
  const harnesses = [{ name: 'echo' }, { name: 'none' }, { name: 'echo', pauseMs: 'long' }];
  for (const harness of harnesses) await publishAgentVersion(database.pool, agentId, { ...manifest, harness });
  const reasons = [];
  for (const version of [1, 2, 3]) {
    const read = await catalogue.version(agentId, version);
    reasons.push(read && (await catalogue.readiness(read)));
  }
  const missing = { message: 'its harness is missing', detail: 'There is no harness "none".' };
  const detail = 'The manifest has invalid harness settings: harness.pauseMs: must be a number.';
  expect(reasons).toEqual([[], [missing], [{ message: 'the settings of its harness are wrong', detail }]]);
});

it('returns the last warnings of each tool server in a manifest', async () => {
  const { pool } = database;
  const catalogue = makeCatalogue();
  const agentId = await createAgent(pool, { organizationId, manifest });
  const toolServers = ['web', 'mail'].map((name) => ({ name, url: 'https://any' }));
  const live = agentManifestSchema.parse({ ...manifest, toolServers });
  const details = async () => (await catalogue.toolWarnings(agentId, live)).map(({ detail }) => detail);
  expect(await details()).toEqual([]);
  await noteToolWarnings(pool, agentId, 'mail', ['A.']);
  await noteToolWarnings(pool, agentId, 'gone', ['Of a server that the manifest does not name.']);
  await noteToolWarnings(pool, agentId, 'web', ['B.']);
  await noteToolWarnings(pool, agentId, 'web', ['C.', 'D.']);
  expect(await details()).toEqual(['toolServers.0 (web): C.', 'toolServers.0 (web): D.', 'toolServers.1 (mail): A.']);
  await noteToolWarnings(pool, agentId, 'web', []);
  expect(await details()).toEqual(['toolServers.1 (mail): A.']);
  await noteToolWarnings(pool, agentId, 'mail', Array<string>(1_000).fill('A.'));
  expect((await details()).slice(19)).toEqual([
    'toolServers.1 (mail): A.',
    'toolServers.1 (mail): And 980 more warnings.',
  ]);
});
