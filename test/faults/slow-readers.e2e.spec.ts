import { eventually, reportFigure } from '#testing';
import { AppendedRun } from '../support/appended-run.ts';
import { expectHealthy } from '../support/checks.ts';
import { inParallel, readLog, type Caller } from '../support/client.ts';
import { LeanReader } from '../support/lean-reader.ts';
import { KB, ProcessGauge } from '../support/process-gauge.ts';
import { isLong, startSystem, upTo, type System } from '../support/system.ts';
import { percentile } from '../support/times.ts';

const SLOW = isLong ? 200 : 60;
const FAST = 8;
const ENTRY = 'x'.repeat(4 * KB);
/** Of 4 KB: more than the system's own buffers take for one who never reads, which is 3.7 MB with Linux's defaults. */
const HISTORY = 1_200;
const MAX_KB_A_READER = 128;
/** By which a process is larger or smaller from one time to the next, whatever it does: of 200 readers it is not allowed for. */
const NOISE_KB = isLong ? 0 : 8 * KB;
/** How many of the slow ones come back, each to read the whole log. */
const RESUMED = isLong ? SLOW : 8;
const WRITE_EVERY_MS = 100;
const MEASURE_EVERY_MS = 1_000;

interface Listener {
  reader: LeanReader;
  data: string[];
}

describe(`${SLOW} readers that never read (F10)`, () => {
  let system: System;
  let caller: Caller;
  let gauge: ProcessGauge;
  let run: AppendedRun;
  let fast: Listener[] = [];
  /** How long entries took from before their append to a fast reader, milliseconds. */
  const latencies: number[] = [];

  beforeAll(async () => {
    system = await startSystem();
    const api = await system.startApi(ProcessGauge.env);
    [caller, gauge] = [api.caller, new ProcessGauge(api.process)];
    run = await AppendedRun.start(system, caller);
    const batch = Array.from({ length: 50 }, () => ENTRY);
    for (let written = 0; written < HISTORY; written += batch.length) await run.write(...batch);
  }, 120_000);

  afterAll(async () => {
    fast.forEach(({ reader }) => reader.leave());
    await run.close();
    await system.stop();
  });

  async function openFast(lastId: string): Promise<Listener> {
    const data: string[] = [];
    const reader = new LeanReader(run.threadId, (_id, text) => {
      data.push(text);
      latencies.push(performance.now() - Number(/written at ([\d.]+)/.exec(text)?.[1]));
    });
    reader.lastId = lastId;
    await reader.visit(caller);
    return { reader, data };
  }

  /** Writes ten entries a second while something else happens; answers how many. */
  async function writeWhile(happen: () => Promise<void>): Promise<number> {
    let isOver = false;
    let written = 0;
    const writing = (async (): Promise<void> => {
      for (let at = performance.now(); !isOver; at += WRITE_EVERY_MS, written++) {
        await run.write(`written at ${performance.now()} ${ENTRY}`);
        await eventually(() => performance.now() >= at + WRITE_EVERY_MS, { what: 'the next entry is due' });
      }
    })();
    await happen().finally(() => (isOver = true));
    await writing;
    return written;
  }

  /** Opens them all, and answers the most that the process held (medians of three) until so many are left. */
  async function standInTheWay(left: number): Promise<{ readers: Listener[]; peak: number }> {
    const readers = Array.from({ length: SLOW }, (): Listener => {
      const data: string[] = [];
      return { data, reader: new LeanReader(run.threadId, (_id, text) => data.push(text)) };
    });
    await Promise.all(readers.map(({ reader }) => reader.visit(caller, { isHeld: true })));
    const held: number[] = [];
    let at = 0;
    const areGone = async (): Promise<boolean> => {
      if (performance.now() < at) return false;
      const asked = performance.now();
      const { bytes, connections } = await gauge.sample();
      held.push(bytes);
      // It must not be most of what the process does.
      at = performance.now() + Math.max(MEASURE_EVERY_MS, 4 * (performance.now() - asked));
      return held.length > 2 && connections <= left + FAST + 1;
    };
    await eventually(areGone, { what: `of the slow readers ${left} are left`, timeoutMs: 120_000 });
    const medians = held.slice(2).map((_, i) => held.slice(i, i + 3).toSorted((a, b) => a - b)[1]!);
    return { readers, peak: Math.max(...medians) };
  }

  /** Takes what it was sent before it was cut off, and then comes back by the last id until the Thread is idle. */
  async function expectToResume({ reader, data }: Listener, log: string[]): Promise<void> {
    await reader.readOn();
    // It was cut off, and not for want of entries.
    expect(data.length).toBeLessThan(HISTORY);
    while (reader.lastWord !== 'thread.idle') {
      await reader.visit(caller, { query: 'until=idle' });
      await reader.readOn();
    }
    expect(data.length).toBe(log.length);
    expect(data.every((text, i) => text === log[i])).toBe(true);
  }

  test(
    `cost at most ${MAX_KB_A_READER} KB each, do not hold up the others, and come back by id to the whole log`,
    async () => {
      const history = await readLog(caller, run.threadId);
      fast = await Promise.all(Array.from({ length: FAST }, () => openFast(history.at(-1)!.id)));
      // Once unmeasured: what a process grows by when it first serves so many is not theirs. When the first has been cut off,
      // all have long had what they are given; the last, to whom the system's own buffers open bit by bit, take a minute.
      const first = await standInTheWay(SLOW - 1);
      first.readers.forEach(({ reader }) => reader.leave());
      const before = await gauge.measure();
      let second = first;
      const written = await writeWhile(async () => {
        second = await standInTheWay(0);
      });
      const cost = (second.peak - before.bytes) / KB / SLOW;
      let kept = Infinity;
      const isGone = async (): Promise<boolean> => {
        kept = Math.min(kept, ((await gauge.measure()).live - before.live) / KB / SLOW);
        return kept <= MAX_KB_A_READER;
      };
      // Some of it goes a moment later.
      await eventually(isGone, { what: 'what they cost is gone, but for what each may keep', timeoutMs: 15_000 });
      await eventually(() => fast.every(({ data }) => data.length === written), { what: 'fast readers have all' });
      const [p50, p99] = [percentile(latencies, 0.5), percentile(latencies, 0.99)];
      reportFigure(
        `F10: ${SLOW} readers that never read cost ${cost.toFixed(1)} KB each, ${kept.toFixed(1)} KB each stayed; ` +
          `${FAST} fast ones had each of ${written} entries after p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms`,
      );
      expect(cost).toBeLessThanOrEqual(MAX_KB_A_READER + NOISE_KB / SLOW);
      // Told by the bus, and not found by the poll of 2 s.
      expect(p50).toBeLessThan(1_000);

      await run.complete();
      const log = (await readLog(caller, run.threadId)).map((entry) => JSON.stringify(entry));
      await eventually(() => fast.every(({ data }) => data.at(-1) === log.at(-1)), { what: 'fast ones saw the end' });
      for (const { data } of fast) expect(data).toEqual(log.slice(history.length));
      await inParallel(RESUMED, 4, async (i) => {
        const listener = second.readers[i]!;
        await expectToResume(listener, log);
        listener.data.length = 0;
      });
      second.readers.forEach(({ reader }) => reader.leave());
      await expectHealthy(system.database);
    },
    upTo(240_000),
  );
});
