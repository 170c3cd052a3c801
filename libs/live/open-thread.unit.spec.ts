import { randomInt } from 'node:crypto';
import { setImmediate as settled } from 'node:timers/promises';
import { seededRandom } from '#testing';
import type { FramedPage } from './framed-page.ts';
import {
  OpenThread,
  type FollowingPage,
  type LogReader,
  type Reading,
  type ReaderEnd,
  type ThreadReads,
} from './open-thread.ts';

/**
 * A Thread and its readers, whose asynchronous steps the test chooses by a seed. A read takes its snapshot at one step and
 * returns at a later one, or fails. Wake-ups are late, repeated or lost.
 */
class Simulation implements ThreadReads {
  /** The event of version i + 1 is at index i. */
  readonly log: { id: string; isPublic: boolean; idle: boolean }[] = [];
  readonly thread = new OpenThread('T', this);
  readonly readers: SimulatedReader[] = [];
  readonly wakes: { version: number; news?: FollowingPage }[] = [];
  readonly violations: string[] = [];
  private readonly unlooked: (() => void)[] = [];
  private readonly unanswered: (() => void)[] = [];

  constructor(
    readonly random: () => number,
    readonly faults: { loseWakes: boolean; failReads: boolean },
    /** Whether some readers are expected: they open after their first page was read. */
    readonly someExpected: boolean,
  ) {
    this.commit();
  }

  get version(): number {
    return this.log.length;
  }

  get mayNeedPolls(): boolean {
    return this.faults.loseWakes || this.faults.failReads;
  }

  commit(idle = this.random() < 0.3): void {
    // A change of status is always public.
    const isPublic = idle !== (this.log.at(-1)?.idle ?? true) || this.random() < 0.7;
    this.log.push({ id: idOf(this.version + 1), isPublic, idle });
    const wake = { version: this.version, ...(this.random() < 0.5 ? { news: this.newsOfLast() } : {}) };
    if (!this.faults.loseWakes || this.random() < 0.5) this.wakes.push(wake);
    if (this.random() < 0.2) this.wakes.push(wake);
  }

  /** The entries of up to three commits, which travel with the wake-up. */
  private newsOfLast(): FollowingPage {
    const { version } = this;
    const fromVersion = Math.max(0, version - 1 - Math.floor(this.random() * 3));
    const events = this.log.map((event, i) => ({ ...event, version: i + 1 })).slice(fromVersion);
    const shown = events.filter(({ isPublic }) => isPublic);
    return { fromVersion, version, page: () => (this.random() < 0.1 ? null : framed(shown, this.endAt(version))) };
  }

  private endAt(version: number) {
    const { id, idle } = this.log[version - 1]!;
    return { version, eventId: id, idle };
  }

  publicIds(after: string, upTo = this.version): string[] {
    const events = this.log.slice(0, upTo).filter(({ id, isPublic }) => isPublic && id > after);
    return events.map(({ id }) => id);
  }

  readPage(_threadId: string, after: string): Promise<FramedPage> {
    return this.later(() => {
      const pageSize = 1 + Math.floor(this.random() * 4);
      const all = this.log.map((event, i) => ({ ...event, version: i + 1 }));
      const rest = all.filter(({ id, isPublic }) => isPublic && id > after);
      return framed(rest.slice(0, pageSize), rest.length < pageSize ? this.endAt(this.version) : null);
    });
  }

  failed(error: unknown): void {
    if ((error as Error).message !== 'unavailable') this.violations.push(String(error));
  }

  released(): void {}

  poll(): Promise<void> {
    return this.later(() => this.version).then(
      (version) => {
        if (version > this.thread.covered) this.thread.movedTo(version);
        this.thread.retry();
      },
      () => undefined,
    );
  }

  /** Takes one random step, if it is possible. */
  step(): void {
    const choices = [
      () => this.commit(),
      () => this.wake(...this.wakes.splice(Math.floor(this.random() * this.wakes.length), 1)),
      () => this.takeOne(this.unlooked),
      () => this.takeOne(this.unlooked),
      () => this.takeOne(this.unanswered),
      () => this.takeOne(this.unanswered),
      () => this.open(),
      () => this.any(this.readers)?.makeRoom(),
      () => this.random() < 0.1 && this.any(this.readers)?.reading.close(),
      () => this.mayNeedPolls && this.random() < 0.1 && void this.poll(),
    ];
    this.any(choices)?.();
  }

  private wake(wake?: { version: number; news?: FollowingPage }): void {
    if (wake !== undefined) this.thread.wake(wake.version, wake.news);
  }

  open(): void {
    // Opens readers until the last step, so that some start when few steps follow.
    if (this.readers.length >= (this.someExpected ? 30 : 5)) return;
    if (this.someExpected && this.random() < 0.4) void this.expectReader();
    else this.readers.push(new SimulatedReader(this));
  }

  private async expectReader(): Promise<void> {
    const reached = this.thread.expectReader();
    const place = { openedAt: this.version, afterEventId: this.any(this.publicIds('')) ?? '' };
    try {
      const first = await this.readPage('T', place.afterEventId);
      // The page may be too large, or the reader may be refused.
      if (this.random() < 0.9) this.readers.push(new SimulatedReader(this, place, this.random() < 0.8 ? first : null));
    } catch (error) {
      this.failed(error);
    } finally {
      reached();
    }
  }

  /** Finishes everything in progress. */
  async settle(): Promise<void> {
    for (let quiet = 0; quiet < 2; quiet++) {
      await settled();
      while (this.wakes.length + this.unlooked.length + this.unanswered.length > 0 || this.roomWasMade()) {
        quiet = 0;
        for (const wake of this.wakes.splice(0)) this.wake(wake);
        for (const act of [...this.unlooked.splice(0), ...this.unanswered.splice(0)]) act();
        await settled();
      }
    }
  }

  any<T>(among: readonly T[]): T | undefined {
    return among[Math.floor(this.random() * among.length)];
  }

  private roomWasMade(): boolean {
    return this.readers.filter((reader) => reader.makeRoom()).length > 0;
  }

  private takeOne(from: (() => void)[]): void {
    from.splice(Math.floor(this.random() * from.length), 1)[0]?.();
  }

  /** Takes a snapshot at one step, and returns it at a later one. */
  private later<T>(look: () => T): Promise<T> {
    return new Promise((resolve, reject) => {
      this.unlooked.push(() => {
        const answer = look();
        const fails = this.faults.failReads && this.random() < 0.2;
        this.unanswered.push(() => (fails ? reject(new Error('unavailable')) : resolve(answer)));
      });
    });
  }
}

function framed(events: { id: string; version: number }[], end: FramedPage['end']): FramedPage {
  const last = events.at(-1);
  return {
    framesOf: () => ({
      frames: Buffer.from(events.map(({ id }) => `${id}\n`).join('')),
      starts: events.map(({ id }, i) => ({ id, at: i * 7 })),
    }),
    lastId: last?.id ?? '',
    lastVersion: last?.version ?? 0,
    end,
  };
}

const idOf = (version: number): string => String(version).padStart(6, '0');

class SimulatedReader implements LogReader {
  readonly threadId = 'T';
  readonly afterEventId: string;
  readonly untilIdle: boolean;
  readonly ids: string[] = [];
  readonly reading: Reading;
  private readonly openedAt: number;
  private full = false;
  ended: ReaderEnd | null = null;

  constructor(
    private readonly simulation: Simulation,
    place?: { openedAt: number; afterEventId: string },
    first: FramedPage | null = null,
  ) {
    const { random, version } = simulation;
    this.untilIdle = random() < 0.5;
    this.openedAt = place?.openedAt ?? version;
    this.afterEventId = place?.afterEventId ?? this.anyPlace();
    this.reading = simulation.thread.add(this, first);
  }

  private anyPlace(): string {
    const { random, version, someExpected } = this.simulation;
    // An id after the end of the log, forever or until a few more entries are stored.
    if (someExpected && random() < 0.2) return random() < 0.5 ? 'later' : idOf(version + 3);
    return random() < 0.3 ? '' : (this.simulation.any(this.simulation.publicIds('')) ?? '');
  }

  get isReading(): boolean {
    return !this.reading.closed;
  }

  deliver(frames: Buffer): boolean {
    if (this.full || !this.isReading) this.simulation.violations.push('delivered without room or after the end');
    this.ids.push(...frames.toString().split('\n').slice(0, -1));
    this.full = this.simulation.random() < 0.3;
    return !this.full;
  }

  makeRoom(): boolean {
    if (!this.full || !this.isReading) return false;
    this.full = false;
    this.reading.resume();
    return true;
  }

  end(reason: ReaderEnd): void {
    this.ended = reason;
    const { log } = this.simulation;
    const has = (version: number): boolean => this.expected(version).join() === this.ids.join();
    const versions = log.flatMap(({ idle }, i) => (idle && i + 1 >= this.openedAt ? [i + 1] : []));
    if (!versions.some(has)) this.simulation.violations.push('ended as idle with missing or extra entries');
  }

  expected(upTo?: number): string[] {
    return this.simulation.publicIds(this.afterEventId, upTo);
  }
}

async function simulate(seed: number, faults: Simulation['faults'], someExpected: boolean): Promise<void> {
  const random = seededRandom(seed);
  const simulation = new Simulation(random, faults, someExpected);
  for (let i = 0; i < 150; i++) {
    simulation.step();
    await settled();
  }
  await simulation.settle();
  for (let polls = 0; simulation.mayNeedPolls && polls < 50; polls++) {
    void simulation.poll();
    await simulation.settle();
  }
  expect(simulation.violations).toEqual([]);
  for (const reader of simulation.readers) {
    const expected = reader.expected();
    expect(reader.ids).toEqual(reader.isReading ? expected : expected.slice(0, reader.ids.length));
    // A reader until idle must not miss an idle end.
    if (reader.isReading && reader.untilIdle) expect(simulation.log.at(-1)?.idle).toBe(false);
  }
}

const SEEDS = process.env['SPOOL_LONG'] === '1' ? 5_000 : 150;
/** Seeds that failed once. */
const KEPT = [478960595, 747473664, 727968836, 1058330039];

it.each([
  ['without a poll if no wake-up is lost', { loseWakes: false, failReads: false }],
  ['if wake-ups are lost', { loseWakes: true, failReads: false }],
  ['if reads fail', { loseWakes: false, failReads: true }],
  ['if wake-ups are lost and reads fail', { loseWakes: true, failReads: true }],
])('delivers all of the log once and in order %s', async (_, faults) => {
  const first = randomInt(2 ** 30);
  for (const seed of [...KEPT, ...Array.from({ length: SEEDS }, (__, i) => first + i)]) {
    try {
      await simulate(seed, faults, !KEPT.includes(seed));
    } catch (error) {
      throw new Error(`seed ${seed}: ${(error as Error).message}`, { cause: error });
    }
  }
});

it('reads again for a joining reader after a wake-up during its last page', async () => {
  const answers: ((page: FramedPage) => void)[] = [];
  const thread = new OpenThread('T', {
    readPage: () => new Promise((resolve) => answers.push(resolve)),
    failed: () => undefined,
    released: () => undefined,
  });
  const reader = { threadId: 'T', afterEventId: '', untilIdle: false, deliver: () => true, end: () => undefined };
  thread.add(reader, null);
  thread.wake(2);
  const end = { version: 1, eventId: idOf(1), idle: false };
  const framesOf = () => ({ frames: Buffer.alloc(0), starts: [] });
  answers.shift()!({ framesOf, lastId: '', lastVersion: 0, end });
  await settled();
  expect(answers).toHaveLength(1);
});

it('reads on after a version that was never stored, once the stored one is known', async () => {
  const answers: ((page: FramedPage) => void)[] = [];
  const thread = new OpenThread('T', {
    readPage: () => new Promise((resolve) => answers.push(resolve)),
    failed: () => undefined,
    released: () => undefined,
  });
  let delivered = '';
  const deliver = (frames: Buffer): boolean => ((delivered += frames.toString()), true);
  const end = { version: 1, eventId: idOf(1), idle: false };
  thread.add({ threadId: 'T', afterEventId: '', untilIdle: false, deliver, end: () => undefined }, framed([], end));
  await settled();
  thread.wake(1_000_000, {
    fromVersion: 1,
    version: 1_000_000,
    page: () => framed([], { ...end, version: 1_000_000 }),
  });
  thread.wake(2);
  expect([thread.covered, answers.length]).toEqual([1_000_000, 0]);
  thread.movedBack(2);
  answers.shift()!(framed([{ id: idOf(2), version: 2 }], { ...end, version: 2, eventId: idOf(2) }));
  await settled();
  expect([thread.covered, delivered]).toEqual([2, `${idOf(2)}\n`]);
});

it('covers what two readers have that joined together', async () => {
  const thread = new OpenThread('T', {
    readPage: () => Promise.reject(new Error('no read is needed')),
    failed: () => undefined,
    released: () => undefined,
  });
  const reader = { threadId: 'T', afterEventId: '', untilIdle: false, deliver: () => true, end: () => undefined };
  for (let i = 0; i < 2; i++) thread.add(reader, framed([], { version: 4, eventId: idOf(4), idle: false }));
  await settled();
  expect(thread.covered).toBe(4);
});

it('ends a reader whose Thread was deleted between its first page and its start', async () => {
  const ends: ReaderEnd[] = [];
  const reads = { readPage: async () => null, failed: () => undefined, released: () => undefined };
  const thread = new OpenThread('T', reads);
  const reached = thread.expectReader();
  // The wake-up of a deletion has a higher version and no entries.
  thread.wake(5);
  const reader = { threadId: 'T', afterEventId: '', untilIdle: false, deliver: () => true };
  thread.add(
    { ...reader, end: (reason) => ends.push(reason) },
    framed([], { version: 4, eventId: idOf(4), idle: false }),
  );
  reached();
  await settled();
  expect(ends).toEqual(['thread_gone']);
});
