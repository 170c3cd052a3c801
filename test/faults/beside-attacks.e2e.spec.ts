import { eventually } from '#testing';
import { expectHealthy } from '../support/checks.ts';
import { createAcknowledged, inParallel } from '../support/client.ts';
import { ATTACKS, type Aim } from '../support/hostile/attacks.ts';
import { startEndlessServer, type EndlessServer } from '../support/hostile/endless-server.ts';
import { HOSTILE_SCRIPTS } from '../support/hostile/scripts.ts';
import { endOf, startModelSystem, type ModelSystem } from '../support/model-system.ts';
import { addTenant, type Tenant } from '../support/tenants.ts';

// Real: an API process, and one worker with the Runs of both tenants.

const LEASE_MS = 2_000;
const HELD_RUNS = 6;
const NAMES = [
  'edit with a huge result',
  'path of 300,000 characters',
  'input nested 3,000 deep',
  'DOCX that unpacks to 60 MB',
  'tool server with endless pages',
];
const attacks = ATTACKS.filter(({ name }) => NAMES.includes(name));

let models: ModelSystem;
let endless: EndlessServer;
let aim: Aim;
let other: Tenant;

beforeAll(async () => {
  endless = await startEndlessServer();
  const held = { steps: [{ text: ['Done.'] }] };
  models = await startModelSystem({ scripts: { ...HOSTILE_SCRIPTS, held }, env: { LEASE_MS: String(LEASE_MS) } });
  const { system, provider, api } = models;
  const agent = { tools: [{ pattern: '*', policy: 'allow' as const }] };
  const files = await models.publish('openai-compatible', agent);
  const toolServers = [{ name: 'endless', url: endless.url }];
  const { agentId } = await models.publish('openai-compatible', { ...agent, toolServers });
  const agents = { files: files.agentId, endless: agentId };
  aim = { baseUrls: [files.baseUrl], token: files.token, from: '127.0.0.1', agents } as unknown as Aim;
  const model = { provider: 'openai-compatible' as const, name: 'scripted', baseUrl: provider.openaiUrl };
  other = await addTenant(system.database.pool, api.caller.baseUrl, 'other', {
    harness: { name: 'model' },
    model: { ...model, apiKey: { env: 'MODEL_KEY' } },
  });
}, 120_000);

afterAll(async () => {
  await models.stop();
  endless.close();
});

test('attacks of one tenant end with their own errors, and another tenant’s Runs on the same worker keep their claims', async () => {
  const { pool } = models.system.database;
  const held = await inParallel(HELD_RUNS, HELD_RUNS, async (i) => {
    const text = `script: held ${i}`;
    const hold = models.provider.hold('asked', ({ line }) => line === text);
    const run = await createAcknowledged(other, text);
    await hold.reached;
    return { ...run, hold };
  });
  const answers = await Promise.all(attacks.map(({ begin }) => begin(aim)));
  expect(answers.flat().filter(({ status }) => status !== 200 && status !== 201)).toEqual([]);

  await eventually(
    async () => {
      const { rows } = await pool.query(
        `select run_id, status from run_summaries where status not in ('completed', 'failed') and run_id <> all ($1)`,
        [held.map(({ runId }) => runId)],
      );
      expect(rows).toEqual([]);
      return true;
    },
    { what: 'the attacks have ended', timeoutMs: 40_000 },
  );
  const { rows: said } = await pool.query<{ agentId: string; text: string }>(
    `select agent_id as "agentId", coalesce(data->>'result', data#>>'{error,code}') as text
     from events join thread_summaries using (thread_id) where type in ('tool.completed', 'run.failed')`,
  );
  const untold = attacks.filter(
    ({ ending }) => !said.some(({ agentId, text }) => agentId === aim.agents[ending!.agent] && ending!.text.test(text)),
  );
  expect(untold.map(({ name }) => name)).toEqual([]);

  // The first page is refused as it arrives.
  expect(endless.pages()).toBe(1);

  for (const { hold } of held) hold.release();
  const ends = await Promise.all(held.map(({ threadId }) => endOf(other, threadId)));
  expect(ends.map(({ status }) => status)).toEqual(held.map(() => 'completed'));
  const { rows: claims } = await pool.query<{ runs: number; claims: number; holders: number; requeued: number }>(
    `select count(distinct run_id)::integer as runs, count(*) filter (where type = 'run.claimed')::integer as claims,
            count(distinct data->>'holder')::integer as holders, count(*) filter (where type = 'run.requeued')::integer as requeued
     from events where type in ('run.claimed', 'run.requeued')`,
  );
  const runs = HELD_RUNS + NAMES.length;
  // Each Run was claimed once, by the same process.
  expect(claims).toEqual([{ runs, claims: runs, holders: 1, requeued: 0 }]);
  await expectHealthy(models.system.database);
});
