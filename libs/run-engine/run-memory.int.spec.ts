import { ulid } from 'ulid';
import { NoRoom, type RunContext } from '#agents';
import { ByteBudget, type ByteHold } from '#platform';
import { eventually } from '#testing';
import { makeWorld, type World } from './engine.testing.ts';
import { gate, message, ok, scripted, scriptedHarness, tool, useTools } from './scripted-harness.testing.ts';

// Real PostgreSQL. A transcript of 100,000 characters takes 600,000 bytes of room.

let world: World;
beforeAll(async () => {
  world = await makeWorld();
});
afterAll(() => world.close());

const CHARACTERS = 100_000;
const ROOM = 650_000;
const long = (text: string) => text.padEnd(CHARACTERS, 'x');

/** Makes a budget with room for so many Runs, `share` of them of one organization. Returns its reported numbers too. */
function makeMemory({ runs, share = runs, waitMs = 60_000 }: { runs: number; share?: number; waitMs?: number }) {
  const seen = { held: 0, most: 0, waiting: 0 };
  const limits = { process: runs * ROOM, share: share * ROOM, small: 10_000 };
  const budget = new ByteBudget(limits, (held, waiting) => {
    Object.assign(seen, { held, waiting, most: Math.max(seen.most, held) });
  });
  return { memory: { budget, waitMs: () => waitMs }, seen };
}

/** Executes the Run and the jobs of its hand-overs, until it has ended. */
async function executeToEnd(engine: { executeJob: (job: Job) => Promise<void> }, { runId, job }: Said) {
  let next: Job | undefined = job;
  let attempts = 0;
  while (next !== undefined) {
    attempts += 1;
    await engine.executeJob(next);
    const { dispatch }: Job = next;
    next = world.jobs.findLast((one) => one.runId === runId && one.dispatch > dispatch);
  }
  return attempts;
}

type Said = Awaited<ReturnType<World['say']>>;
type Job = Said['job'];

const statusOf = async ({ runId }: Said) => (await world.summary(runId)).status;

async function newAgent() {
  const id = ulid();
  await world.pool.query('insert into organizations (id, name) values ($1, $1)', [id]);
  return world.makeAgent(scripted, id);
}

/** Makes a worker whose Runs wait in their only step until the gate opens, and counts these Runs. */
async function makeHolding(options: Parameters<typeof makeMemory>[0]) {
  const { memory, seen } = makeMemory(options);
  const held = gate();
  const inStep = { now: 0, most: 0 };
  const harness = scriptedHarness(async function* () {
    inStep.most = Math.max(inStep.most, ++inStep.now);
    await held.pass();
    inStep.now -= 1;
    yield message('done');
  });
  const { engine } = await world.makeWorker({ harnesses: [harness], memory });
  return { engine, seen, held, inStep };
}

it('makes Runs wait for memory, and completes all of them', async () => {
  const { engine, seen, held, inStep } = await makeHolding({ runs: 2 });
  const agent = await newAgent();
  const said = [];
  for (let i = 0; i < 6; i++) said.push(await world.sayTo(agent, long(`${i}`)));
  const executions = said.map((one) => executeToEnd(engine, one));
  await eventually(() => seen.waiting === 4 && inStep.now === 2, { what: 'four wait, and two are in their steps' });
  held.open();
  expect(await Promise.all(executions)).toEqual(Array(6).fill(1));
  expect(await Promise.all(said.map(statusOf))).toEqual(Array(6).fill('completed'));
  expect(inStep.most).toBe(2);
  expect(seen.most).toBeLessThanOrEqual(2 * ROOM);
  expect(seen).toMatchObject({ held: 0, waiting: 0 });
});

it('starts another organization’s Runs meanwhile, and small ones even without free memory', async () => {
  const { engine, seen, held, inStep } = await makeHolding({ runs: 2, share: 1 });
  const [greedy, other] = [await newAgent(), await newAgent()];
  const said = [];
  for (let i = 0; i < 3; i++) said.push(await world.sayTo(greedy, long(`${i}`)));
  const executions = said.map((one) => executeToEnd(engine, one));
  await eventually(() => seen.waiting === 2, { what: 'its others wait' });
  const others = [await world.sayTo(other, long('other')), await world.sayTo(other, 'small')];
  executions.push(...others.map((one) => executeToEnd(engine, one)));
  await eventually(() => inStep.now === 3, { what: 'the other’s Runs are in their steps' });
  expect(seen.waiting).toBe(2);
  held.open();
  await Promise.all(executions);
  expect(seen).toMatchObject({ held: 0, waiting: 0 });
});

it('releases the slot after a while, without a loss, and completes once there is room', async () => {
  const { engine, seen, held } = await makeHolding({ runs: 1, waitMs: 100 });
  const agent = await newAgent();
  const first = await world.sayTo(agent, long('first'));
  const execution = engine.executeJob(first.job);
  await held.reached;
  const second = await world.sayTo(agent, long('second'));
  await engine.executeJob(second.job);
  const run = await world.run(second.threadId, second.runId);
  expect(run).toMatchObject({ status: 'queued', dispatch: 2, losses: 0 });
  // The Run is delayed, so that it does not return repeatedly.
  expect(run?.status === 'queued' && run.delayMs).toBeGreaterThanOrEqual(500);
  const types = await world.types(second.threadId);
  expect(types.filter((type) => type.startsWith('run.'))).toEqual(['run.queued', 'run.claimed', 'run.requeued']);
  held.open();
  await execution;
  await engine.executeJob({ ...second.job, dispatch: 2 });
  expect(await statusOf(second)).toBe('completed');
  expect(seen).toMatchObject({ held: 0, waiting: 0 });
});

it('stops waiting when the Run is interrupted, or the worker is stopped', async () => {
  const { engine, seen, held } = await makeHolding({ runs: 1 });
  const agent = await newAgent();
  const first = await world.sayTo(agent, long('first'));
  const execution = engine.executeJob(first.job);
  await held.reached;
  const [interrupted, cut] = [await world.sayTo(agent, long('a')), await world.sayTo(agent, long('b'))];
  const waiting = [interrupted, cut].map(({ job }) => engine.executeJob(job));
  await eventually(() => seen.waiting === 2, { what: 'two wait' });
  await world.handle(interrupted.threadId, { type: 'interrupt', runId: interrupted.runId, by: null });
  engine.wake(interrupted.threadId, (await world.stream(interrupted.threadId)).length);
  await waiting[0];
  expect(await statusOf(interrupted)).toBe('cancelled');
  expect(seen.waiting).toBe(1);
  engine.cutSteps();
  await Promise.all([...waiting, execution]);
  expect(await world.run(cut.threadId, cut.runId)).toMatchObject({ status: 'queued', losses: 0 });
  expect(seen).toMatchObject({ held: 0, waiting: 0 });
});

describe('a growing transcript', () => {
  const fetches = () => tool('fetches', async () => ok('y'.repeat(2 * CHARACTERS)));
  const threeTimes = scriptedHarness(
    async function* ({ transcript }) {
      const steps = transcript.filter(({ role }) => role === 'assistant').length;
      yield steps < 3 ? message('', 'fetches') : message('done');
    },
    [fetches()],
  );

  it('takes free room, and the Run continues', async () => {
    const { memory, seen } = makeMemory({ runs: 9 });
    const { engine } = await world.makeWorker({ harnesses: [threeTimes], memory });
    const said = await world.say('small', scripted);
    expect(await executeToEnd(engine, said)).toBe(1);
    expect(await statusOf(said)).toBe('completed');
    expect(seen.most).toBeGreaterThan(3 * 2 * 6 * CHARACTERS);
    expect(seen.held).toBe(0);
  });

  it('hands the Run over after its step if there is no room, and each attempt makes progress', async () => {
    const { memory, seen } = makeMemory({ runs: 1, waitMs: 20 });
    const { engine } = await world.makeWorker({ harnesses: [threeTimes], memory });
    const blocker = memory.budget.hold('another');
    blocker.count(10 * ROOM);
    const said = await world.say('small', scripted);
    await engine.executeJob(said.job);
    const run = await world.run(said.threadId, said.runId);
    expect(run).toMatchObject({ status: 'queued', dispatch: 2, losses: 0 });
    expect((await world.types(said.threadId)).filter((type) => type === 'tool.completed')).toHaveLength(1);
    // Alone, it fits at any size, and lacks room only after another step.
    blocker.release();
    expect(await executeToEnd(engine, { ...said, job: { ...said.job, dispatch: 2 } })).toBe(1);
    expect(await statusOf(said)).toBe('completed');
    expect(seen.held).toBe(0);
  });
});

describe('other data that a Run reads', () => {
  it('fails the call that finds no room, and is released at its end', async () => {
    const { memory, seen } = makeMemory({ runs: 1 });
    const results: string[] = [];
    const reads = tool('reads', async ({ makeRoom }) => {
      const bytes = results.length === 0 ? 2 * ROOM : ROOM / 2;
      makeRoom(bytes);
      return ok(`read ${bytes}`);
    });
    const harness = scriptedHarness(
      async function* ({ transcript }) {
        results.splice(0, Infinity, ...transcript.flatMap((entry) => (entry.role === 'tool' ? entry.result : [])));
        yield results.length < 3 ? message('', 'reads') : message('done');
      },
      [reads],
    );
    const { engine } = await world.makeWorker({ harnesses: [harness], memory });
    const said = await world.say('small', scripted);
    expect(await executeToEnd(engine, said)).toBe(1);
    expect(results).toEqual([new NoRoom(0).message, `read ${ROOM / 2}`, `read ${ROOM / 2}`]);
    expect(seen).toMatchObject({ held: 0, most: ROOM / 2 });
  });

  it('in a step makes the Run wait without its transcript, and hands it over', async () => {
    const { memory, seen } = makeMemory({ runs: 2 });
    const steps: number[] = [];
    const harness = scriptedHarness(async function* ({ makeRoom }) {
      steps.push(seen.held);
      makeRoom(ROOM);
      yield message('done');
    });
    const { engine } = await world.makeWorker({ harnesses: [harness], memory });
    const blocker = memory.budget.hold('another');
    blocker.count(ROOM);
    const said = await world.say(long('x'), scripted);
    const execution = engine.executeJob(said.job);
    await eventually(() => seen.waiting === 1, { what: 'it waits' });
    expect(seen.held).toBe(ROOM);
    blocker.release();
    await execution;
    // It may return immediately.
    expect(await world.run(said.threadId, said.runId)).toMatchObject({ status: 'queued', losses: 0, delayMs: 0 });
    expect(await executeToEnd(engine, { ...said, job: { ...said.job, dispatch: 2 } })).toBe(1);
    expect(await statusOf(said)).toBe('completed');
    expect(steps).toHaveLength(2);
    expect(seen.held).toBe(0);
  });

  it('at boot makes the Run wait', async () => {
    const { memory, seen } = makeMemory({ runs: 1 });
    let tries = 0;
    const harness = {
      ...scriptedHarness(useTools([])),
      tools: async () => {
        if (++tries === 1) throw new NoRoom(ROOM);
        return [];
      },
    };
    const { engine } = await world.makeWorker({ harnesses: [harness], memory });
    const said = await world.say('x', scripted);
    await engine.executeJob(said.job);
    const run = await world.run(said.threadId, said.runId);
    expect(run).toMatchObject({ status: 'queued', losses: 0 });
    // There was room immediately. It must not return immediately, because the boot may need more.
    expect(run?.status === 'queued' && run.delayMs).toBeGreaterThanOrEqual(500);
    expect(seen).toMatchObject({ held: 0, waiting: 0 });
  });

  it('at boot does not compete with the Run’s own transcript', async () => {
    const { memory, seen } = makeMemory({ runs: 1 });
    const lists: ByteHold[] = [];
    const harness = {
      ...scriptedHarness(useTools([])),
      tools: async ({ openHold }: RunContext) => {
        const list = openHold();
        list.keep();
        if (!list.growTo(ROOM / 2)) throw new NoRoom(ROOM / 2);
        lists.push(list);
        return [];
      },
    };
    const { engine } = await world.makeWorker({ harnesses: [harness], memory });
    const said = await world.say(long('x'), scripted);
    expect(await executeToEnd(engine, said)).toBe(1);
    expect(await statusOf(said)).toBe('completed');
    expect(seen.held).toBe(ROOM / 2);
    for (const list of lists) list.release();
  });

  it('of the largest call fits beside the Run’s own transcript if there is nothing else', async () => {
    const { memory, seen } = makeMemory({ runs: 1 });
    const reads = tool('reads', async ({ makeRoom }) => {
      for (const bytes of [20_000, ROOM - 40_000, 20_000]) makeRoom(bytes);
      expect(() => makeRoom(1)).toThrow(NoRoom);
      return ok('read');
    });
    const { engine } = await world.makeWorker({ harnesses: [scriptedHarness(useTools(['reads']), [reads])], memory });
    const said = await world.say(long('x'), scripted);
    expect(await executeToEnd(engine, said)).toBe(1);
    const events = await world.stream(said.threadId);
    expect(events.find(({ type }) => type === 'tool.completed')).toMatchObject({ data: { outcome: 'ok' } });
    expect(seen.most).toBeGreaterThan(ROOM + 6 * CHARACTERS);
    expect(seen.held).toBe(0);
  });
});

it('estimates the memory of a transcript before it is read', async () => {
  const bounds = { events: 1_000, bytes: 1024 ** 2, characters: 100, note: '' };
  const said = await world.say('x'.repeat(128_000), scripted);
  const { bytes: whole } = await world.store.measureTranscript(said.threadId, bounds);
  expect(whole).toBeGreaterThan(128_000);
  expect(whole).toBeLessThan(129_000);
  const old = { ...bounds, bytes: 1_000 };
  expect(await world.store.measureTranscript(said.threadId, old)).toEqual({ bytes: 400, hasStops: false });
  expect(await world.store.measureTranscript(ulid(), bounds)).toEqual({ bytes: 0, hasStops: false });
});
