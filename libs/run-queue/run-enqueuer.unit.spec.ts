import { pino } from 'pino';
import type { RunJob } from '#event-store';
import { RunEnqueuer } from './run-enqueuer.ts';
import { windowOf } from './run-queue.ts';

const jobOf = (i: number): RunJob => ({ runId: `run${i}`, threadId: 'thread', dispatch: 1 });
const logger = pino({ level: 'silent' });

interface Given {
  slots?: number;
  paused?: boolean;
  pausedByTool?: boolean;
  crowded?: boolean;
  waiting?: number;
}

/** Makes a RunEnqueuer with a queue in memory. A silent queue answers when the test calls `answers`. */
function setUp(given: Given = {}) {
  const { slots = 0, paused = false, pausedByTool = false, crowded = false } = given;
  const clock = { now: 0 };
  const batches: RunJob[][] = [];
  const state = {
    waiting: given.waiting ?? 0,
    asked: 0,
    answers: [] as (() => void)[],
    silent: false,
    unavailable: false,
  };
  const answered = (): Promise<void> =>
    state.silent ? new Promise((resolve) => state.answers.push(resolve)) : Promise.resolve();
  const queue = {
    enqueue: async (batch: readonly RunJob[]) => {
      if (state.unavailable) throw new Error('unavailable');
      await answered();
      if (batch.length > 0) batches.push([...batch]);
      state.waiting += batch.length;
    },
    enqueueAhead: async () => {
      throw new Error('not here');
    },
    waitingCount: async () => {
      state.asked++;
      if (state.unavailable) throw new Error('unavailable');
      return state.waiting;
    },
    isPausedByTool: async () => false,
    liftToolPause: async () => undefined,
    ensureEpochMarker: async () => true,
    consume: () => {
      throw new Error('not here');
    },
    close: async () => undefined,
  };
  const known = { slots, paused, pausedByTool, unavailable: false, crowded, limited: false };
  const controls = { read: async () => known };
  const tested = new RunEnqueuer({ queue, controls, logger, now: () => clock.now });
  const settled = async (): Promise<void> => {
    while (tested.inFlight > 0) await new Promise((resolve) => setImmediate(resolve));
  };
  return { tested, batches, state, clock, settled };
}

it('enqueues the Runs that arrive during a batch as the next batch', async () => {
  const { tested, batches, settled } = setUp({ slots: 100 });
  tested.enqueueSoon(jobOf(1));
  tested.enqueueSoon(jobOf(2));
  tested.enqueueSoon(jobOf(3));
  await settled();
  expect(batches).toEqual([[jobOf(1)], [jobOf(2), jobOf(3)]]);
});

it.each([
  ['no job while the queue is paused', { slots: 10, paused: true }, 0],
  ['no job while a BullMQ tool has paused the queue', { slots: 10, pausedByTool: true }, 0],
  ['two jobs a slot', { slots: 10 }, 20],
  ['as many jobs as the window leaves', { slots: 10, waiting: 15 }, 5],
  ['no job if the window is full', { slots: 10, waiting: 25 }, 0],
  ['16 jobs while no worker is known', {}, windowOf(0)],
  ['an eighth of the window during a backlog', { slots: 32, crowded: true }, 8],
])('enqueues %s', async (_, given, count) => {
  const { tested, batches, settled } = setUp(given);
  for (let i = 0; i < 50; i++) tested.enqueueSoon(jobOf(i));
  await settled();
  expect(batches.flat()).toHaveLength(count);
});

it('reads the queue depth at most every 250 ms, and counts the jobs that it adds', async () => {
  const { tested, batches, state, clock, settled } = setUp({ slots: 10 });
  for (let i = 0; i < 10; i++) {
    tested.enqueueSoon(jobOf(i));
    await settled();
  }
  expect(state.asked).toBe(1);
  clock.now = 251;
  tested.enqueueSoon(jobOf(10));
  await settled();
  expect(state.asked).toBe(2);
  expect(batches.flat()).toHaveLength(11);
});

it('reads the queue depth again after 10 ms while the window is full', async () => {
  const { tested, batches, state, clock, settled } = setUp({ slots: 10, waiting: 20 });
  tested.enqueueSoon(jobOf(1));
  await settled();
  state.waiting = 0;
  tested.enqueueSoon(jobOf(2));
  await settled();
  expect(batches).toEqual([]);
  clock.now = 11;
  tested.enqueueSoon(jobOf(3));
  await settled();
  expect(batches).toEqual([[jobOf(3)]]);
});

it('keeps at most 1,000 jobs while the queue is silent, and drops jobs older than 200 ms', async () => {
  const { tested, batches, state, clock, settled } = setUp({ slots: 5_000 });
  let dropped = 0;
  tested.onDropped(() => dropped++);
  state.silent = true;
  tested.enqueueSoon(jobOf(0));
  await new Promise((resolve) => setImmediate(resolve));
  for (let i = 1; i < 3_000; i++) tested.enqueueSoon(jobOf(i));
  expect(tested.inFlight).toBe(1_000);
  expect(dropped).toBe(2_000);
  clock.now = 201;
  state.silent = false;
  state.answers.forEach((answer) => answer());
  await settled();
  expect(batches).toEqual([[jobOf(0)]]);
});

it('leaves Runs to the dispatcher during an outage of the queue, and enqueues again afterwards', async () => {
  const { tested, batches, state, clock, settled } = setUp();
  let dropped = 0;
  tested.onDropped(() => dropped++);
  state.unavailable = true;
  tested.enqueueSoon(jobOf(1));
  await settled();
  expect(dropped).toBe(1);
  state.unavailable = false;
  clock.now = 20;
  tested.enqueueSoon(jobOf(2));
  await settled();
  expect(batches).toEqual([[jobOf(2)]]);
});

it('enqueues no job after it was closed', async () => {
  const { tested, batches, settled } = setUp();
  tested.enqueueSoon(jobOf(1));
  await tested.close();
  tested.enqueueSoon(jobOf(2));
  await settled();
  expect(batches.flat().map(({ runId }) => runId)).not.toContain('run2');
});
