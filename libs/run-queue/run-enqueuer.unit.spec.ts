import { pino } from 'pino';
import type { RunJob } from '#event-store';
import { RunEnqueuer } from './run-enqueuer.ts';
import { windowOf } from './run-queue.ts';

const offer = (i: number): RunJob => ({ runId: `run${i}`, threadId: 'thread', dispatch: 1 });
const logger = pino({ level: 'silent' });

interface Given {
  slots?: number;
  paused?: boolean;
  pausedByTool?: boolean;
  crowded?: boolean;
  waiting?: number;
}

/** A queue in memory; its answers come when `answer` is called, or at once. */
function offers(given: Given = {}) {
  const { slots = 0, paused = false, pausedByTool = false, crowded = false } = given;
  const clock = { now: 0 };
  const batches: RunJob[][] = [];
  const state = { waiting: given.waiting ?? 0, asked: 0, answers: [] as (() => void)[], silent: false, away: false };
  const answered = (): Promise<void> =>
    state.silent ? new Promise((resolve) => state.answers.push(resolve)) : Promise.resolve();
  const queue = {
    enqueue: async (batch: readonly RunJob[]) => {
      if (state.away) throw new Error('away');
      await answered();
      if (batch.length > 0) batches.push([...batch]);
      state.waiting += batch.length;
    },
    enqueueAhead: async () => {
      throw new Error('not here');
    },
    waitingCount: async () => {
      state.asked++;
      if (state.away) throw new Error('away');
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
  const known = { slots, paused, pausedByTool, away: false, crowded, limited: false };
  const controls = { read: async () => known };
  const tested = new RunEnqueuer({ queue, controls, logger, now: () => clock.now });
  const settled = async (): Promise<void> => {
    while (tested.inFlight > 0) await new Promise((resolve) => setImmediate(resolve));
  };
  return { tested, batches, state, clock, settled };
}

it('offers what arrives together, and meanwhile, in batches', async () => {
  const { tested, batches, settled } = offers({ slots: 100 });
  tested.enqueueSoon(offer(1));
  tested.enqueueSoon(offer(2));
  tested.enqueueSoon(offer(3));
  await settled();
  expect(batches).toEqual([[offer(1)], [offer(2), offer(3)]]);
});

it.each([
  ['nothing while the queue is paused', { slots: 10, paused: true }, 0],
  ['nothing while a BullMQ tool has paused the queue', { slots: 10, pausedByTool: true }, 0],
  ['two jobs a slot', { slots: 10 }, 20],
  ['what the window leaves', { slots: 10, waiting: 15 }, 5],
  ['nothing when the window is full', { slots: 10, waiting: 25 }, 0],
  ['a little while no worker is known', {}, windowOf(0)],
  ['next to nothing beside a backlog', { slots: 32, crowded: true }, 8],
])('offers %s', async (_, given, count) => {
  const { tested, batches, settled } = offers(given);
  for (let i = 0; i < 50; i++) tested.enqueueSoon(offer(i));
  await settled();
  expect(batches.flat()).toHaveLength(count);
});

it('asks how full the queue is at most every 250 ms, and counts what it adds', async () => {
  const { tested, batches, state, clock, settled } = offers({ slots: 10 });
  for (let i = 0; i < 10; i++) {
    tested.enqueueSoon(offer(i));
    await settled();
  }
  expect(state.asked).toBe(1);
  clock.now = 251;
  tested.enqueueSoon(offer(10));
  await settled();
  expect(state.asked).toBe(2);
  expect(batches.flat()).toHaveLength(11);
});

it('asks again soon once there is no room, so that a queue that drains is filled', async () => {
  const { tested, batches, state, clock, settled } = offers({ slots: 10, waiting: 20 });
  tested.enqueueSoon(offer(1));
  await settled();
  state.waiting = 0;
  tested.enqueueSoon(offer(2));
  await settled();
  expect(batches).toEqual([]);
  clock.now = 11;
  tested.enqueueSoon(offer(3));
  await settled();
  expect(batches).toEqual([[offer(3)]]);
});

it('keeps at most 1,000 while the queue is silent, and drops those that have waited for 200 ms', async () => {
  const { tested, batches, state, clock, settled } = offers({ slots: 5_000 });
  let dropped = 0;
  tested.onDropped(() => dropped++);
  state.silent = true;
  tested.enqueueSoon(offer(0));
  await new Promise((resolve) => setImmediate(resolve));
  for (let i = 1; i < 3_000; i++) tested.enqueueSoon(offer(i));
  expect(tested.inFlight).toBe(1_000);
  expect(dropped).toBe(2_000);
  clock.now = 201;
  state.silent = false;
  state.answers.forEach((answer) => answer());
  await settled();
  expect(batches).toEqual([[offer(0)]]);
});

it('leaves offers to the dispatcher when the queue is away, and offers again when it is back', async () => {
  const { tested, batches, state, clock, settled } = offers();
  let dropped = 0;
  tested.onDropped(() => dropped++);
  state.away = true;
  tested.enqueueSoon(offer(1));
  await settled();
  expect(dropped).toBe(1);
  state.away = false;
  clock.now = 20;
  tested.enqueueSoon(offer(2));
  await settled();
  expect(batches).toEqual([[offer(2)]]);
});

it('offers nothing after it was closed', async () => {
  const { tested, batches, settled } = offers();
  tested.enqueueSoon(offer(1));
  await tested.close();
  tested.enqueueSoon(offer(2));
  await settled();
  expect(batches.flat().map(({ runId }) => runId)).not.toContain('run2');
});
