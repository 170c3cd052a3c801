import { HarnessError, type Harness, type StepContext, type StepEvent } from '#agents';
import type { FailureCause } from '#domain';
import { eventually } from '#testing';
import { makeWorld, type World } from './engine.testing.ts';
import { message, scripted, scriptedHarness } from './scripted-harness.testing.ts';

let world: World;
beforeEach(async () => {
  world = await makeWorld();
});
afterEach(() => world.close());

const FAILURE = { source: 'provider', name: 'api.example', status: 503 } as const;
/** With the facts of the call. */
const REPORT: FailureCause = { ...FAILURE, requestId: 'req_1', waitedMs: 5 };

const OUTAGE = new HarnessError('provider_unavailable', { report: REPORT });

/** After the events that the specs' own clock dates. */
const LATER = Date.parse('2100-01-01T00:00:00.000Z');

/** A provider that fails while `isDown`, and counts its calls. */
function provider(circuit: string, retryAfterMs?: number) {
  const state = { isDown: true, calls: [] as string[], calledAt: [] as number[], now: LATER };
  async function* step({ runId }: StepContext): AsyncGenerator<StepEvent> {
    state.calls.push(runId);
    state.calledAt.push(state.now);
    if (state.isDown)
      throw new HarnessError('provider_unavailable', { report: REPORT, ...(retryAfterMs && { retryAfterMs }) });
    yield message('All done.');
  }
  const harness: Harness = { ...scriptedHarness(step), models: (manifest) => [{ manifest, circuit }] };
  return { state, harness, now: () => state.now };
}

type Worker = Awaited<ReturnType<World['makeWorker']>>;
type Said = Awaited<ReturnType<World['say']>>;

const attempt = async (worker: Worker, { threadId, runId }: Said): Promise<void> => {
  const { dispatch } = (await world.run(threadId, runId))!;
  await worker.engine.executeJob({ threadId, runId, dispatch });
};

/** Makes time pass in the database. */
const pass = async (ms: number): Promise<void> => {
  const by = `interval '1 millisecond' * $1`;
  await world.pool.query(`update run_work set due_at = due_at - ${by} where state = 'delayed'`, [ms]);
  await world.pool.query(
    `update provider_circuits set probe_at = probe_at - ${by}, probing_until = probing_until - ${by}, last_turn = last_turn - ${by}`,
    [ms],
  );
};

const circuits = async () =>
  (await world.pool.query<{ id: string; cause: unknown }>('select id, cause from provider_circuits')).rows;

/** Fails five calls in a row, which opens the circuit. */
async function openCircuit(worker: Worker): Promise<Said[]> {
  const failed: Said[] = [];
  for (let i = 0; i < 5; i++) {
    failed.push(await world.say('x', scripted));
    await attempt(worker, failed[i]!);
  }
  return failed;
}

test('opens after five failed calls in a row: then a Run waits without a call, with the cause of the others', async () => {
  const { state, harness } = provider('c');
  const worker = await world.makeWorker({ harnesses: [harness] });
  const failed = await openCircuit(worker);
  expect(state.calls).toHaveLength(5);
  expect(await circuits()).toEqual([{ id: 'c', cause: REPORT }]);
  const last = failed.at(-1)!;
  expect(await world.run(last.threadId, last.runId)).toMatchObject({ status: 'queued', streak: { circuit: 'c' } });

  const other = await world.say('y', scripted);
  await attempt(worker, other);
  expect(state.calls).toHaveLength(5);
  const waiting = await world.run(other.threadId, other.runId);
  expect(waiting).toMatchObject({ status: 'queued', losses: 0, streak: { of: 'provider', failures: 1, circuit: 'c' } });
  // The turn after that of the fifth Run.
  expect((waiting as { delayMs: number }).delayMs).toBeGreaterThan(3_000);
  const summary = await world.summary(other.runId);
  expect(summary).toMatchObject({ cause: FAILURE });
  for (const fact of ['requestId', 'waitedMs']) expect(summary).not.toHaveProperty(`cause.${fact}`);
});

test('an answer between failures keeps it closed', async () => {
  const { state, harness } = provider('c');
  const worker = await world.makeWorker({ harnesses: [harness] });
  for (let i = 0; i < 9; i++) {
    state.isDown = i !== 4;
    await attempt(worker, await world.say('x', scripted));
  }
  expect(await circuits()).toEqual([]);
});

test('one of the waiting Runs calls at its turn, on any worker; an answer wakes the others of this circuit', async () => {
  const { state, harness } = provider('c');
  const worker = await world.makeWorker({ harnesses: [harness] });
  const [one, two] = await openCircuit(worker);
  for (const said of [one!, two!]) await attempt(worker, said);
  expect(state.calls).toHaveLength(5);

  await pass(3_000);
  // A worker that has not seen the failures.
  const next = await world.makeWorker({ harnesses: [harness] });
  await attempt(next, one!);
  await attempt(next, two!);
  expect(state.calls.slice(5)).toEqual([one!.runId]);

  await pass(3_000);
  const another = await world.makeWorker({ harnesses: [provider('d').harness] });
  const ofOther = (await openCircuit(another)).at(-1)!;
  state.isDown = false;
  await attempt(next, two!);
  expect(await world.summary(two!.runId)).toMatchObject({ status: 'completed' });
  const due = async () =>
    (
      await world.pool.query<{ id: string }>(
        `select run_id as id from run_work where state = 'delayed' and due_at <= now()`,
      )
    ).rows;
  await eventually(async () => (await due()).some(({ id }) => id === one!.runId), { what: 'the others are due' });
  expect((await circuits()).map(({ id }) => id)).toEqual(['d']);
  expect((await due()).map(({ id }) => id)).not.toContain(ofOther.runId);
});

test('waits as long as the provider asks', async () => {
  const { state, harness } = provider('c', 60_000);
  const worker = await world.makeWorker({ harnesses: [harness] });
  const [one] = await openCircuit(worker);
  await pass(50_000);
  await attempt(worker, one!);
  expect(state.calls).toHaveLength(5);
  await pass(10_000);
  await attempt(worker, one!);
  expect(state.calls).toHaveLength(6);
});

/** The model `first` with the fallback model `second`, each with a provider that tests make fail. */
function twoModels() {
  const errors: Record<string, HarnessError | null> = { first: OUTAGE, second: null };
  const calls: string[] = [];
  async function* step({ manifest }: StepContext): AsyncGenerator<StepEvent> {
    const { name } = manifest.model!;
    calls.push(name);
    if (errors[name]) throw errors[name];
    yield message(`I am ${name}.`);
  }
  const modelOf = (name: string) => ({ provider: 'anthropic' as const, name, silenceMs: 1_000 });
  const harness: Harness = {
    ...scriptedHarness(step),
    models: (manifest) => [
      { manifest: { ...manifest, model: modelOf('first') }, circuit: 'c', model: { name: 'first' } },
      { manifest: { ...manifest, model: modelOf('second') }, circuit: 'd', model: { name: 'second', fallback: 1 } },
    ],
  };
  return { harness, calls, errors };
}

const messageOf = async ({ threadId }: Said): Promise<unknown> =>
  (await world.stream(threadId)).find(({ type }) => type === 'assistant.message_added')?.data;

test('a fallback model makes the step while the first model fails, and the message says which', async () => {
  const { harness, calls, errors } = twoModels();
  const worker = await world.makeWorker({ harnesses: [harness] });
  const said = await openCircuit(worker);
  expect(calls).toEqual(Array(5).fill(['first', 'second']).flat());
  for (const run of said)
    expect(await messageOf(run)).toMatchObject({ text: 'I am second.', model: { name: 'second', fallback: 1 } });

  const other = await world.say('y', scripted);
  await attempt(worker, other);
  expect(calls.slice(10)).toEqual(['second']);

  await pass(3_000);
  errors['first'] = null;
  const probe = await world.say('z', scripted);
  await attempt(worker, probe);
  expect(calls.slice(11)).toEqual(['first']);
  expect(await messageOf(probe)).toMatchObject({ text: 'I am first.', model: { name: 'first' } });
  await eventually(async () => (await circuits()).length === 0, { what: 'the circuit is closed' });
});

test.each(['provider_unavailable', 'provider_auth'] as const)(
  'a Run whose fallback model fails with %s waits for its first model',
  async (code) => {
    const { harness, errors } = twoModels();
    errors['second'] = new HarnessError(code);
    const worker = await world.makeWorker({ harnesses: [harness] });
    const [run] = await openCircuit(worker);
    expect(await world.run(run!.threadId, run!.runId)).toMatchObject({ status: 'queued', streak: { of: 'provider' } });
    const other = await world.say('y', scripted);
    await attempt(worker, other);
    expect(await world.run(other.threadId, other.runId)).toMatchObject({ status: 'queued', streak: { circuit: 'c' } });
  },
);

test('a refusal of the first model is not sent to the fallback model', async () => {
  const { harness, calls, errors } = twoModels();
  errors['first'] = new HarnessError('provider_auth');
  const worker = await world.makeWorker({ harnesses: [harness] });
  const run = await world.say('x', scripted);
  await attempt(worker, run);
  expect(await world.summary(run.runId)).toMatchObject({ status: 'failed', error: { code: 'provider_auth' } });
  expect(calls).toEqual(['first']);
});

test('an outage of five minutes: one call every 3 s, no Run fails, none runs twice', async () => {
  const { state, harness, now } = provider('c');
  const worker = await world.makeWorker({ harnesses: [harness], now });
  const runs: Said[] = [];
  const dueRuns = async () => {
    const { rows } = await world.pool.query<{ runId: string }>(
      `select run_id as "runId" from run_work where state = 'ready' or (state = 'delayed' and due_at <= now())`,
    );
    return runs.filter(({ runId }) => rows.some((row) => row.runId === runId));
  };
  let attempts = 0;
  for (let second = 0; second < 300; second++) {
    if (second < 40) runs.push(await world.say('x', scripted));
    for (const run of await dueRuns()) {
      attempts += 1;
      await attempt(worker, run);
    }
    state.now += 1_000;
    await pass(1_000);
  }
  // Five calls open the circuit within seconds.
  const afterOpening = state.calledAt.slice(5);
  const apart = afterOpening.slice(1).map((at, i) => at - afterOpening[i]!);
  expect(Math.min(...apart)).toBeGreaterThanOrEqual(3_000);
  expect(afterOpening.length).toBeGreaterThan(60);
  // A waiting Run is a row. It is rarely claimed before its turn.
  expect(attempts).toBeLessThan(2 * state.calls.length + 2 * runs.length);

  state.isDown = false;
  for (let second = 0; second < 60 && (await dueRuns()).length + (await circuits()).length > 0; second++) {
    for (const run of await dueRuns()) await attempt(worker, run);
    state.now += 1_000;
    await pass(1_000);
  }
  for (const { runId, threadId } of runs) {
    expect(await world.summary(runId)).toMatchObject({ status: 'completed' });
    const types = await world.types(threadId);
    expect(types.filter((type) => type === 'assistant.message_added')).toHaveLength(1);
  }
});
