import type { StreamEnd } from '#event-store';
import { framesAfter, type FramedPage } from './framed-page.ts';
import { metrics } from './metrics.ts';

/** Why a reader was ended: no Run is active and all is delivered, or the Thread was deleted. */
export type ReaderEnd = 'idle' | 'thread_gone';

/** One who follows the public log of a Thread. Its methods must not throw. */
export interface LogReader {
  readonly threadId: string;
  /** Reads strictly after this id; '' is before every id. */
  readonly afterEventId: string;
  /** The version of the stream up to which it has everything, as it was read a moment ago; 0 where that is not known. */
  readonly knownUpTo: number;
  /** Whether to end once no Run is active and all is delivered. */
  readonly untilIdle: boolean;
  /** Whether its entries have the optional fields; default: false. */
  readonly extended?: boolean;
  /**
   * Takes the next frames, one or more whole ones; may keep the bytes and must not change them. Answers whether it has room
   * for more; after `false` nothing comes until `resume`.
   */
  deliver(frames: Buffer): boolean;
  /** Nothing is delivered after it. */
  end(reason: ReaderEnd): void;
}

/** What an open Thread needs of its hub. */
export interface ThreadReads {
  /** Null: there is no such Thread. */
  readPage(threadId: string, afterEventId: string): Promise<FramedPage | null>;
  /** It has rejected; it is tried again after the next poll that succeeds. */
  failed(error: unknown): void;
  /** The last reader has gone. */
  released(thread: OpenThread): void;
}

/** A reader's place in the log: what it holds while it reads. */
export class Reading {
  lastId: string;
  /** The newest stream version that a page has had. */
  version = 0;
  /** It has reached the end, and shares the reads of the others. */
  live = false;
  /** It reads a page of its own now. */
  paging = false;
  /** It has no room: what comes is not kept for it, it reads it when it has. */
  full = false;
  closed = false;

  constructor(
    readonly reader: LogReader,
    private readonly thread: OpenThread,
  ) {
    this.lastId = reader.afterEventId;
  }

  /** The reader has room again. */
  resume(): void {
    this.full = false;
    void this.thread.catchUp(this);
  }

  close(): void {
    this.closed = true;
    this.thread.remove(this);
  }
}

/**
 * One Thread with readers in this process. A reader that is behind reads pages of its own until it has reached the end;
 * from then on one read serves all who are live, from the lowest id that any of them has seen.
 */
export class OpenThread {
  /** All live readers have been given every public event up to this version, unless a read is due or under way. */
  covered = 0;
  private readonly readings = new Set<Reading>();
  /** Counts what was heard of the Thread: a reader that joins must have heard the same before its last page was read. */
  private news = 0;
  private moved = false;
  private readingOn = false;
  private hasFailed = false;

  constructor(
    readonly id: string,
    private readonly reads: ThreadReads,
  ) {}

  get readers(): number {
    return this.readings.size;
  }

  add(reader: LogReader): Reading {
    const reading = new Reading(reader, this);
    this.readings.add(reading);
    if (reader.knownUpTo > 0) this.joinAt(reading, reader.knownUpTo);
    else void this.catchUp(reading);
    return reading;
  }

  remove(reading: Reading): void {
    if (this.readings.delete(reading) && this.readings.size === 0) this.reads.released(this);
  }

  /** Somebody says that the Thread has moved; true or not, it is only read. */
  wake(version: number): void {
    if (version > this.covered) void this.readOn();
  }

  /** The database says where the Thread stands; null: nowhere any more. */
  movedTo(version: number | null): void {
    if (version !== null) return this.wake(version);
    for (const reading of this.readings) this.end(reading, 'thread_gone');
  }

  /** The database is back: what has failed is tried again. */
  retry(): void {
    if (!this.hasFailed) return;
    this.hasFailed = false;
    if (this.moved) void this.readOn();
    for (const reading of this.readings) void this.catchUp(reading);
  }

  /** Gives a reader that is behind pages of its own until it is full or has reached the end. */
  async catchUp(reading: Reading): Promise<void> {
    if (reading.paging) return;
    reading.paging = true;
    try {
      while (!reading.live && !reading.full && !reading.closed) {
        const { news } = this;
        const page = await this.reads.readPage(this.id, reading.lastId);
        if (page === null) return this.movedTo(null);
        this.give(reading, page);
        if (page.end !== null && !reading.closed) this.join(reading, news, page.end);
      }
    } catch (error) {
      this.fail(error);
    } finally {
      reading.paging = false;
    }
  }

  private join(reading: Reading, news: number, { version }: StreamEnd): void {
    reading.live = true;
    if (news !== this.news) void this.readOn();
    // What others have been given is not known from its page.
    else if (this.readings.size === 1) this.covered = Math.max(this.covered, version);
  }

  /** Without a page of its own. What was heard between that version and now is found by the poll. */
  private joinAt(reading: Reading, version: number): void {
    reading.live = true;
    if (this.covered > version) void this.readOn();
    else if (this.readings.size === 1) this.covered = version;
  }

  /** Reads on for all live readers; one read at a time, and again when there was news meanwhile. */
  private async readOn(): Promise<void> {
    this.news++;
    this.moved = true;
    if (this.readingOn) return;
    this.readingOn = true;
    try {
      while (this.moved) await this.readShared();
    } catch (error) {
      this.moved = true;
      this.fail(error);
    } finally {
      this.readingOn = false;
    }
  }

  private async readShared(): Promise<void> {
    this.moved = false;
    const from = this.live().reduce<string | null>(
      (low, { lastId }) => (low !== null && low < lastId ? low : lastId),
      null,
    );
    if (from === null) return;
    const page = await this.reads.readPage(this.id, from);
    if (page === null) return this.movedTo(null);
    const covered = Math.max(this.covered, page.end?.version ?? page.lastVersion);
    if (covered > this.covered) this.news++;
    this.covered = covered;
    for (const reading of this.live()) {
      // It joined during the read, from before its start.
      if (reading.lastId < from) this.moved = true;
      else this.give(reading, page);
    }
    if (page.end === null) this.moved = true;
  }

  private live(): Reading[] {
    return [...this.readings].filter(({ live }) => live);
  }

  private give(reading: Reading, page: FramedPage): void {
    if (reading.closed) return;
    if (page.lastId > reading.lastId) {
      if (reading.full) {
        // It does not hold up the others: it is behind now.
        reading.live = false;
        return;
      }
      const { bytes, entries } = framesAfter(page.framesOf(reading.reader.extended ?? false), reading.lastId);
      reading.lastId = page.lastId;
      metrics.streamEntries.inc(entries);
      if (entries > 0) reading.full = !reading.reader.deliver(bytes);
    }
    const version = page.end?.version ?? page.lastVersion;
    // Versions show that a page is out of date. Ids do not: a reader may resume with an id later than the whole log.
    if (version < reading.version) return;
    reading.version = version;
    if (reading.reader.untilIdle && page.end?.idle) this.end(reading, 'idle');
  }

  private end(reading: Reading, reason: ReaderEnd): void {
    reading.close();
    reading.reader.end(reason);
  }

  private fail(error: unknown): void {
    this.hasFailed = true;
    this.reads.failed(error);
  }
}
