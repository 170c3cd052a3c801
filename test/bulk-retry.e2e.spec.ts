import type { BulkAction, ManagedRun } from '#contract';
import { eventually } from '#testing';
import { createAcknowledged, send, type Caller } from './support/client.ts';
import { endOf, startModelSystem, type ModelSystem } from './support/model-system.ts';
import { operatorOf } from './support/operator.ts';
import { SpoolCommand } from './support/spool-command.ts';

const RUNS = 200;

let models: ModelSystem;
beforeAll(async () => {
  models = await startModelSystem({ env: { OLD_KEY: 'revoked' } });
}, 120_000);
afterAll(() => models.stop());

test('Runs that failed by a wrong key are retried in one action, also if the API process that began it is killed', async () => {
  const { system, api } = models;
  const caller = await models.publish('openai-compatible', {
    name: 'support-bot',
    model: { apiKey: { env: 'OLD_KEY' } },
  });
  const threads = await Promise.all(
    Array.from({ length: RUNS }, (_, i) => createAcknowledged(caller, `script: hello ${i}`)),
  );
  const ends = await Promise.all(threads.map(({ threadId }) => endOf(caller, threadId)));
  expect(new Set(ends.map(({ error }) => error?.code))).toEqual(new Set(['provider_auth']));

  // One command that takes a customer's id says why.
  const spoolOf = ({ baseUrl }: Pick<Caller, 'baseUrl'>) =>
    new SpoolCommand({ SPOOL_URL: new URL(baseUrl).origin, SPOOL_TOKEN: system.operatorToken });
  const first = spoolOf(api.caller);
  const listed = await first.run(['run', 'list', '--user-id', 'tester', '--json', '--all']);
  const failed = JSON.parse(listed.out) as ManagedRun[];
  expect(failed).toHaveLength(RUNS);
  const summary = failed[0]!.cause!.summary;
  expect(summary).toMatch(/^HTTP 401 from 127\.0\.0\.1:\d+$/);

  await repair(caller);
  const second = await system.startApi();
  // The first process gets to the Run in the middle, and is killed there.
  const middle = failed.map(({ id, threadId }) => ({ id, threadId })).sort((a, b) => (a.id < b.id ? -1 : 1))[RUNS / 2]!;
  const client = await system.database.pool.connect();
  await client.query('begin');
  await client.query('select from streams where thread_id = $1 for update', [middle.threadId]);
  const action = first.run(['run', 'retry', '--cause', summary, '--yes']);
  const operator = operatorOf(system, second);
  const newest = async (): Promise<BulkAction | undefined> =>
    (await send<{ bulkActions: BulkAction[] }>(operator, 'GET', '/bulk-actions')).body.bulkActions[0];
  await eventually(async () => (await newest())?.done === RUNS / 2, { what: 'half of the Runs are retried' });
  await api.process.kill('SIGKILL');
  await client.query('rollback');
  client.release();
  expect((await action).err).toMatch(/spool bulk watch 01/);

  const ended = await eventually(
    async () => {
      const bulk = await newest();
      return bulk?.state === 'done' ? bulk : undefined;
    },
    { what: 'the other process has ended it', timeoutMs: 45_000 },
  );
  expect(ended).toMatchObject({ runs: RUNS, done: RUNS, notDone: 0, left: 0 });
  const watched = await spoolOf(second.caller).run(['bulk', 'watch', ended.id]);
  expect(watched.out).toBe(`${RUNS} of ${RUNS} Runs retried.\n`);

  const repaired = { ...second.caller, agentId: caller.agentId };
  for (const { threadId, runId } of threads) {
    const run = await endOf(repaired, threadId);
    expect(run).toMatchObject({ status: 'completed', finalOutput: { text: 'Hello, I am here.' } });
    const { body } = await send<{ runs: { id: string }[] }>(repaired, 'GET', `/threads/${threadId}/runs`);
    expect(body.runs.map(({ id }) => id)).toEqual([run.id, runId]);
  }
  const { rows } = await system.database.pool.query(
    `select count(*)::integer from audit_entries where action = 'run.retried'`,
  );
  expect(rows).toEqual([{ count: RUNS }]);

  /** Publishes a version with the right key. */
  async function repair({ agentId }: Caller): Promise<void> {
    const { out } = await first.run(['agent', 'show', agentId, '--json']);
    const { agent, manifest } = JSON.parse(out) as { agent: { organizationId: string }; manifest: { model: object } };
    const fixed = { ...manifest, model: { ...manifest.model, apiKey: { env: 'MODEL_KEY' } } };
    const body = { organizationId: agent.organizationId, manifests: [fixed] };
    expect((await send(operatorOf(system, api), 'POST', '/agents/apply', body)).status).toBe(200);
  }
}, 180_000);
