import type { ThreadEventType } from '#domain';
import { openLiveBus, type LiveBus } from '#live';
import { createLogger, loadConfig, openDatabase } from '#platform';
import { openRunQueue, type RunQueue } from '#run-queue';
import { eventually, faultProxy } from '#testing';
import { makeWorld, type World } from './engine.testing.ts';
import { WorkerLoop, type WorkerLoopOptions } from './worker-loop.ts';

let world: World;
let queue: RunQueue;
/** The buses of the worker and of another process. */
let bus: LiveBus;
let otherBus: LiveBus;
const loops: WorkerLoop[] = [];
const logger = createLogger('silent', 'worker loop spec');

beforeAll(async () => {
  world = await makeWorld();
  queue = await openRunQueue({ url: world.url, name: 'worker-loop-spec', logger });
  const config = loadConfig({ DATABASE_URL: world.url });
  [bus, otherBus] = [openLiveBus(config, logger), openLiveBus(config, logger)];
});
afterEach(async () => {
  for (const loop of loops.splice(0)) await loop.stop();
});
afterAll(async () => {
  await queue.close();
  await Promise.all([bus.close(), otherBus.close()]);
  await world.close();
});

async function startLoop(more: Partial<WorkerLoopOptions> = {}, worker?: Awaited<ReturnType<World['makeWorker']>>) {
  const { engine, leases, holder } = worker ?? (await world.makeWorker());
  const own = { pool: world.pool, queue, bus, engine, leases, holder, logger };
  const loop = new WorkerLoop({ ...own, graceMs: 2_000, slots: 4, ...more });
  loops.push(loop);
  await loop.start();
  return { loop, holder };
}

const statusOf = async (runId: string) => (await world.summary(runId)).status;
const slots = async (holder: string) =>
  (await world.pool.query<{ slots: number }>('select slots from workers where holder = $1', [holder])).rows[0]?.slots;

it('executes several Runs from the queue at the same time', async () => {
  const { loop, holder } = await startLoop();
  expect(await slots(holder)).toBe(4);
  const runs = await Promise.all(['a', 'b', 'c', 'd'].map((word) => world.say(`${word} /think 1500`)));
  await queue.enqueue(runs.map(({ job }) => job));
  await eventually(() => loop.active === 4, { what: 'all four are being executed' });
  for (const { runId } of runs) {
    await eventually(async () => (await statusOf(runId)) === 'completed', { what: 'the Run is completed' });
  }
  await eventually(() => loop.active === 0, { what: 'all jobs are done' });
  await loop.stop();
  expect(loop.stage).toBe('stopped');
  expect(await slots(holder)).toBeUndefined();
});

it('logs and registers the result of the sandbox check of tool servers', async () => {
  const found = { isolation: 'user' as const, refused: null, warnings: ['It is shared.'] };
  let log = '';
  const logging = createLogger('info', 'test', { write: (line) => void (log += line) });
  const { holder } = await startLoop({ logger: logging, reportSandbox: () => Promise.resolve(found) });
  const { rows } = await world.pool.query('select sandbox from workers where holder = $1', [holder]);
  expect(rows).toEqual([{ sandbox: found }]);
  const line = log.split('\n').find((text) => text.includes('tool server sandbox checked')) ?? '{}';
  expect(JSON.parse(line)).toMatchObject({ ...found, level: expect.stringMatching(/warn/) as string });
  // Waits until it takes Runs.
  const { runId, job } = await world.say('hi');
  await queue.enqueue([job]);
  await eventually(async () => (await statusOf(runId)) === 'completed', { what: 'the Run is completed' });
});

it('takes no Run if it is stopped during the start', async () => {
  const { engine, leases, holder } = await world.makeWorker();
  const loop = new WorkerLoop({ pool: world.pool, queue, bus, engine, leases, holder, slots: 4, graceMs: 100, logger });
  loops.push(loop);
  const consume = jest.spyOn(queue, 'consume');
  await Promise.all([loop.start(), loop.stop()]);
  expect(loop.stage).toBe('stopped');
  expect(consume).not.toHaveBeenCalled();
  expect(await slots(holder)).toBeUndefined();
  consume.mockRestore();
});

it('leaves Runs to other workers while its database is unavailable', async () => {
  const line = await faultProxy(Number(new URL(world.url).port));
  const url = line.through(world.url);
  const database = await openDatabase({ url, applicationName: 'test', maxConnections: 2 });
  try {
    const { engine, leases, holder } = await world.makeWorker({ url, leaseMs: 1_000 });
    const options = { pool: database.pool, queue, bus, engine, leases, holder, slots: 4, graceMs: 100, logger };
    const cutOff = new WorkerLoop(options);
    loops.push(cutOff);
    await cutOff.start();
    line.stall();
    const { job, runId } = await world.say('a');
    await queue.enqueue([job]);
    await eventually(() => cutOff.active === 1, { what: 'the worker has taken the job' });
    const isGivenBack = async () => cutOff.active === 0 && (await queue.waitingCount()) === 1;
    await eventually(isGivenBack, { what: 'the job waits for another worker' });
    const { loop } = await startLoop();
    await eventually(async () => (await statusOf(runId)) === 'completed', { what: 'another worker completes the Run' });
    await loop.stop();
    line.resume();
    const later = await world.say('b');
    await queue.enqueue([later.job]);
    await eventually(async () => (await statusOf(later.runId)) === 'completed', {
      what: 'the worker takes Runs again',
    });
    await cutOff.stop();
  } finally {
    await database.close();
    await line.close();
  }
}, 30_000);

it('stops the work on an interrupted Run when it is woken', async () => {
  const worker = await world.makeWorker({ leaseMs: 3_600_000 });
  // Claims are neither checked nor renewed, so only a wake-up can stop the work.
  jest.spyOn(worker.renewer, 'start').mockReturnValue();
  const { loop } = await startLoop({}, worker);
  const { job, threadId, runId } = await world.say('a b /pause 60s');
  await queue.enqueue([job]);
  const hasSpoken = async () => (await world.types(threadId)).includes('assistant.text_added');
  await eventually(hasSpoken, { what: 'the Run has written text' });
  await world.handle(threadId, { type: 'interrupt', runId: null, by: null });
  const hasStopped = () => {
    // The first ones can be lost, because the other process might not be connected yet.
    otherBus.publish(threadId, 1_000);
    return loop.active === 0;
  };
  await eventually(hasStopped, { what: 'the work has stopped' });
  expect(await statusOf(runId)).toBe('cancelled');
});

it('stops in two stages, and another worker completes the Runs that it hands over', async () => {
  const { loop } = await startLoop({ graceMs: 3_500 });
  const [soon, late] = [await world.say('soon /think 1s'), await world.say('late /pause 60s')];
  await queue.enqueue([soon.job, late.job]);
  await eventually(() => loop.active === 2, { what: 'both are being executed' });
  // A booting Run counts as active, but would be handed over before its first step.
  const says = async ({ threadId }: typeof soon, type: ThreadEventType) => (await world.types(threadId)).includes(type);
  await eventually(() => says(soon, 'assistant.thinking_added'), { what: 'the one Run has begun its step' });
  await eventually(() => says(late, 'assistant.text_added'), { what: 'the late Run has written text' });

  const stopping = loop.stop();
  expect(loop.stage).toBe('draining');
  const ignored = await world.say('for another');
  await queue.enqueue([ignored.job]);
  await stopping;
  expect(loop.stage).toBe('stopped');
  expect(await statusOf(soon.runId)).toBe('completed');
  const { threadId, runId } = late;
  expect(await world.run(threadId, runId)).toMatchObject({ status: 'queued', dispatch: 2, losses: 0 });
  expect(world.jobs).toContainEqual({ threadId, runId, dispatch: 2 });

  await startLoop();
  await eventually(async () => (await statusOf(ignored.runId)) === 'completed', { what: 'the other Run is completed' });
  await queue.enqueue([{ threadId, runId, dispatch: 2 }]);
  await eventually(async () => (await world.run(threadId, runId))?.attempt === 2, { what: 'it is claimed again' });
  await world.handle(threadId, { type: 'interrupt', runId: null, by: null });
});
