import { setTimeout as sleep } from 'node:timers/promises';
import { HarnessError, type Harness, type StepEvent } from '#agents';
import { createLogger } from '#platform';
import { eventually } from '#testing';
import { makeWorld, type World } from './engine.testing.ts';
import { expectInvariants } from './oracle.testing.ts';
import { gate, message, scripted, scriptedHarness } from './scripted-harness.testing.ts';

let world: World;
beforeAll(async () => {
  world = await makeWorld();
});
afterAll(() => world.close());

const ENDS = 'assistant.message_added run.completed thread.status_entered';

const answer = async function* (): AsyncGenerator<StepEvent> {
  yield message('done');
};

/** A harness that boots until `booted` opens and runs its step until `said` opens. */
function slowHarness(step: Harness['step'] = answer) {
  const booted = gate();
  const said = gate();
  const harness: Harness = {
    ...scriptedHarness(async function* (context) {
      await said.pass();
      yield* step(context);
    }),
    tools: async () => booted.pass().then(() => []),
  };
  return { harness, booted, said };
}

async function boot(harness: Harness, options = {}) {
  const worker = await world.makeWorker({ harnesses: [harness], ...options });
  const said = await world.say('x', scripted);
  const since = world.commits.length;
  const execution = worker.engine.executeJob(said.job);
  return { ...worker, ...said, execution, commits: () => world.commits.slice(since) };
}

const statusOf = async (runId: string) => (await world.summary(runId)).status;

const isBlocked = async (): Promise<boolean> => {
  const { rowCount } = await world.pool.query(
    `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
  );
  return rowCount !== 0;
};

it('stores booting until the tools are loaded, then running before a slow model responds', async () => {
  const { harness, booted, said } = slowHarness();
  const { leases, threadId, runId, execution, commits } = await boot(harness);
  await booted.reached;
  expect(await world.summary(runId)).toMatchObject({ status: 'booting', started_at: null });
  expect((await world.store.load(threadId))?.summaries.thread?.status).toBe('RUNNING');
  const [claim] = leases.claims();
  booted.open();
  // The step does not wait for the append.
  await said.reached;
  // Timers of one process fire in order, and the claim's timer of 20 ms was set earlier.
  await sleep(25);
  await claim!['writing'];
  expect(commits()).toEqual(['run.claimed', 'run.started']);
  expect(await world.summary(runId)).toMatchObject({ status: 'running', started_at: expect.anything() as unknown });
  said.open();
  await execution;
  expect(commits().slice(2)).toEqual([`assistant.text_added ${ENDS}`]);
  expectInvariants(await world.stream(threadId));
});

it('stores the start with the first facts if they come immediately', async () => {
  const { commits, execution } = await boot(scriptedHarness(answer));
  await execution;
  expect(commits()).toEqual(['run.claimed', `run.started assistant.text_added ${ENDS}`]);
});

it('stores the start of a Run whose first step fails immediately', async () => {
  const fails = async function* (): AsyncGenerator<StepEvent> {
    yield* [];
    throw new HarnessError('provider_rejected');
  };
  const { commits, execution } = await boot(scriptedHarness(fails));
  await execution;
  expect(commits()).toEqual(['run.claimed', 'run.started run.failed thread.status_entered']);
});

it('does not start a Run that ended while its start waited for the append', async () => {
  const booted = gate();
  const fails: Harness = {
    ...scriptedHarness(async function* () {
      yield* [];
      throw new HarnessError('provider_rejected');
    }),
    tools: async () => booted.pass().then(() => []),
  };
  const { leases, threadId, execution, commits } = await boot(fails);
  await booted.reached;
  const [claim] = leases.claims();
  const blocking = await world.pool.connect();
  await blocking.query('begin');
  await blocking.query('select from streams where thread_id = $1 for update', [threadId]);
  booted.open();
  await eventually(isBlocked, { what: 'the failure waits to be stored' });
  // Timers of one process fire in order, and the claim's timer of 20 ms was set earlier.
  await sleep(25);
  await blocking.query('commit');
  blocking.release();
  await execution;
  await claim!['writing'];
  expect(commits()).toEqual(['run.claimed', 'run.started run.failed thread.status_entered']);
  expect(claim!.stopReason).toBeNull();
});

it('requeues a Run that cannot boot, fails it in the end, and never starts it', async () => {
  const broken: Harness = {
    ...scriptedHarness(answer),
    tools: async () => Promise.reject(new HarnessError('tool_server_unavailable')),
  };
  const { engine, job, threadId, runId, execution } = await boot(broken);
  await execution;
  const counted = { losses: 0, streak: { of: 'other', failures: 1 } };
  expect(await world.run(threadId, runId)).toMatchObject({ status: 'queued', dispatch: 2, ...counted });
  expect((await world.store.load(threadId))?.summaries.thread?.status).toBe('RESCHEDULING');
  for (const dispatch of [2, 3]) await engine.executeJob({ ...job, dispatch });
  expect(await world.summary(runId)).toMatchObject({
    status: 'failed',
    started_at: null,
    error: { code: 'tool_server_unavailable' },
  });
  expect(await world.types(threadId)).not.toContain('run.started');
});

it('stops when the Run is cancelled while it boots', async () => {
  const { harness, booted } = slowHarness();
  const { engine, threadId, runId, execution } = await boot(harness);
  await booted.reached;
  await world.handle(threadId, { type: 'interrupt', runId: null, by: null });
  engine.wake(threadId, Infinity);
  await execution;
  booted.open();
  expect(await statusOf(runId)).toBe('cancelled');
  expect(await world.types(threadId)).not.toContain('run.started');
});

it('stores no more facts if the append of the start shows that the Run was cancelled', async () => {
  const { harness, booted } = slowHarness();
  const { leases, threadId, execution } = await boot(harness);
  await booted.reached;
  await world.handle(threadId, { type: 'interrupt', runId: null, by: null });
  const types = await world.types(threadId);
  const [claim] = leases.claims();
  booted.open();
  // The step never ends, so only the start can have changed the status.
  await execution;
  expect(claim?.stopReason).toBe('gone');
  expect(await world.types(threadId)).toEqual(types);
});

it('hands over a booting Run without a start when the worker stops', async () => {
  const { harness, booted } = slowHarness();
  const { engine, threadId, runId, execution, commits } = await boot(harness);
  await booted.reached;
  engine.drain();
  engine.cutSteps();
  await execution;
  booted.open();
  expect(commits()).toEqual(['run.claimed', 'run.requeued thread.status_entered']);
  expect(await world.run(threadId, runId)).toMatchObject({ status: 'queued', losses: 0 });
});

it('hands over without a start if the worker drains when boot ends', async () => {
  const { harness, booted } = slowHarness();
  const { engine, execution, commits } = await boot(harness);
  await booted.reached;
  engine.drain();
  booted.open();
  await execution;
  expect(commits()).toEqual(['run.claimed', 'run.requeued thread.status_entered']);
});

it('requeues a Run whose worker is lost during the boot, and starts it once on another worker', async () => {
  const { harness, booted, said } = slowHarness();
  const { leases, job, threadId, runId, execution } = await boot(harness);
  await booted.reached;
  await world.endLease(runId);
  await world.makeReaper().reap(new AbortController().signal);
  expect(await world.run(threadId, runId)).toMatchObject({ status: 'queued', dispatch: 2, losses: 1 });
  expect((await world.store.load(threadId))?.summaries.thread?.status).toBe('RESCHEDULING');
  const other = await world.makeWorker({ harnesses: [scriptedHarness(answer)] });
  const [late] = leases.claims();
  await other.engine.executeJob({ ...job, dispatch: 2 });
  // The first worker was slow, not dead: its start is refused.
  booted.open();
  await execution;
  said.open();
  expect(late?.stopReason).toBe('gone');
  expect(await statusOf(runId)).toBe('completed');
  const events = await world.stream(threadId);
  expect(events.filter(({ type }) => type === 'run.started')).toMatchObject([{ attempt: 2, data: { first: true } }]);
  expectInvariants(events);
});

it('stores the start with the next append if it could not be stored alone', async () => {
  await world.ownerPool.query(`
    create function refuse_start() returns trigger language plpgsql as
      $$ begin raise exception 'refused for the test'; end $$;
    create trigger refuse_start before insert on events for each row when (new.type = 'run.started')
      execute function refuse_start()`);
  const lines: string[] = [];
  const logger = createLogger('warn', 'booting spec', { write: (line: string) => void lines.push(line) });
  const { harness, booted, said } = slowHarness();
  const { runId, execution, commits } = await boot(harness, { logger });
  booted.open();
  try {
    await eventually(() => lines.some((line) => line.includes('run start not stored; the next append retries it')), {
      what: 'the start was refused',
    });
  } finally {
    await world.ownerPool.query('drop function refuse_start cascade');
  }
  expect(await statusOf(runId)).toBe('booting');
  said.open();
  await execution;
  expect(commits()).toEqual(['run.claimed', `run.started assistant.text_added ${ENDS}`]);
});

it('begins no step if the Thread was deleted while the Run booted', async () => {
  const steps = jest.fn(answer);
  const { harness, booted, said } = slowHarness(steps);
  const { threadId, execution, leases } = await boot(harness);
  said.open();
  await booted.reached;
  await world.handler.deleteThread(threadId);
  booted.open();
  await execution;
  expect(steps).not.toHaveBeenCalled();
  expect(leases.claims()).toEqual([]);
});
