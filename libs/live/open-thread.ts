import { framesAfter, type FramedPage } from './framed-page.ts';
import { metrics } from './metrics.ts';

/** The reason for the end of a reader: no Run is active and all entries are delivered, or the Thread was deleted. */
export type ReaderEnd = 'idle' | 'thread_gone';

/** A reader of the public log of a Thread. Its methods must not throw. */
export interface LogReader {
  readonly threadId: string;
  /** Reads strictly after this id; '' is before every id. */
  readonly afterEventId: string;
  /** Whether to end once no Run is active and all entries are delivered. */
  readonly untilIdle: boolean;
  /** Whether its entries have the optional fields; default: false. */
  readonly extended?: boolean;
  /**
   * Takes one or more whole frames. May keep the bytes but must not change them. Returns whether it has room for more. After
   * `false`, nothing is delivered until `resume`.
   */
  deliver(frames: Buffer): boolean;
  /** Ends the reader. Nothing is delivered afterwards. */
  end(reason: ReaderEnd): void;
}

/** The functions of the hub for an open Thread. */
export interface ThreadReads {
  /** Reads a page after the event; null if the Thread does not exist. */
  readPage(threadId: string, afterEventId: string): Promise<FramedPage | null>;
  /** Called when a read rejects. It is retried after the next successful poll. */
  failed(error: unknown): void;
  /** Called when the last reader has left. */
  released(thread: OpenThread): void;
}

/** A page that came with a wake-up, for readers that have everything up to `fromVersion` or more. */
export interface FollowingPage {
  fromVersion: number;
  version: number;
  /** Returns the page; null if it cannot be used. */
  page: () => FramedPage | null;
}

/** The most pages of wake-ups that are kept for readers that are behind. */
const KEPT_PAGES = 16;

/** The position of a reader in the log. */
export class Reading {
  lastId: string;
  /** The highest stream version of its pages. */
  version = 0;
  /** Whether it has reached the end and shares reads. */
  live = false;
  /** Whether it is reading its own pages. */
  paging = false;
  /** Whether it has no room. New entries are not kept for it; it reads them later. */
  full = false;
  closed = false;

  constructor(
    readonly reader: LogReader,
    private readonly thread: OpenThread,
  ) {
    this.lastId = reader.afterEventId;
  }

  /** Continues, because the reader has room again. */
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
 * A Thread with readers in this process. A reader that is behind reads its own pages until the end. After that, one read serves
 * all live readers, from the lowest id that any of them has.
 */
export class OpenThread {
  /** The version up to which all live readers have every public event, unless a read is due or in progress. */
  covered = 0;
  private readonly readings = new Set<Reading>();
  /** The highest version of any wake-up or read. If a joining reader has less, the Thread is read on. */
  private seen = 0;
  /** Pages of the last wake-ups, while a reader is behind. */
  private kept: FollowingPage[] = [];
  /** Readers that are reading their own pages, and those that will open. */
  private behind = 0;
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

  /** Keeps the pages of wake-ups for a reader that will open. Returns a function that ends this. */
  expectReader(): () => void {
    this.behind++;
    return () => this.caughtUp();
  }

  /** `first`: its first page, which was read while a reader was expected. */
  add(reader: LogReader, first: FramedPage | null): Reading {
    const reading = new Reading(reader, this);
    this.readings.add(reading);
    void this.catchUp(reading, first);
    return reading;
  }

  remove(reading: Reading): void {
    if (this.readings.delete(reading)) this.releaseIfUnused();
  }

  private caughtUp(): void {
    if (--this.behind === 0) this.kept = [];
    this.releaseIfUnused();
  }

  private releaseIfUnused(): void {
    if (this.readings.size === 0 && this.behind === 0) this.reads.released(this);
  }

  /**
   * Delivers the news if the version is new, or reads on after a gap. A version that is not stored yet, or never, costs a read at the
   * next poll, which corrects it (`movedBack`).
   */
  wake(version: number, news?: FollowingPage): void {
    if (version <= this.covered) return;
    this.seen = Math.max(this.seen, version);
    if (news !== undefined && this.behind > 0) this.kept = [...this.kept, news].slice(-KEPT_PAGES);
    const live = this.live();
    // A reader that is behind compares versions when it joins.
    if (live.length === 0) return;
    const follows = news !== undefined && news.fromVersion <= this.covered && !this.readingOn && !this.moved;
    const page = follows ? news.page() : null;
    if (page === null) return void this.readOn();
    this.covered = version;
    for (const reading of live) this.give(reading, page);
  }

  /** Applies the stored version of the Thread; null if it was deleted. */
  movedTo(version: number | null): void {
    if (version !== null) return this.wake(version);
    for (const reading of this.readings) this.end(reading, 'thread_gone');
  }

  /** Applies a stored version below the one that was known, after a false wake-up or a fail-over that lost commits. */
  movedBack(version: number): void {
    this.covered = version;
    this.seen = version;
    this.kept = [];
    if (this.live().length > 0) void this.readOn();
  }

  /** Retries failed reads, because the database is available again. */
  retry(): void {
    if (!this.hasFailed) return;
    this.hasFailed = false;
    if (this.moved) void this.readOn();
    for (const reading of this.readings) void this.catchUp(reading);
  }

  /** Reads pages for one reader until it is full or has reached the end. */
  async catchUp(reading: Reading, first: FramedPage | null = null): Promise<void> {
    if (reading.paging) return;
    reading.paging = true;
    this.behind++;
    try {
      let page = first;
      while (!reading.live && !reading.full && !reading.closed) {
        // Awaits the first page too, because nothing is delivered before `add` returns.
        page = await (page ?? this.reads.readPage(this.id, reading.lastId));
        if (page === null) return this.movedTo(null);
        this.give(reading, page);
        if (page.end !== null && !reading.closed) this.join(reading, page.end.version);
        page = null;
      }
    } catch (error) {
      this.fail(error);
    } finally {
      reading.paging = false;
      this.caughtUp();
    }
  }

  /** Makes a reader live that has everything up to the version. */
  private join(reading: Reading, version: number): void {
    reading.live = true;
    const reached = this.giveKept(reading, version);
    const isBehind = reached < this.seen;
    this.seen = Math.max(this.seen, reached);
    if (isBehind) return void this.readOn();
    const live = this.live();
    if (live.length > 0) this.covered = Math.max(this.covered, Math.min(...live.map((other) => other.version)));
  }

  /** Gives the reader the kept pages that follow the version. Returns the version that it has then. */
  private giveKept(reading: Reading, version: number): number {
    let reached = version;
    for (const kept of this.kept) {
      // A full reader falls behind.
      if (reading.closed || !reading.live) break;
      if (kept.fromVersion > reached || kept.version <= reached) continue;
      const page = kept.page();
      if (page === null) break;
      this.give(reading, page);
      reached = kept.version;
    }
    return reached;
  }

  /** Reads for all live readers, one read at a time, and again after news during a read. */
  private async readOn(): Promise<void> {
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
    this.covered = Math.max(this.covered, page.end?.version ?? page.lastVersion);
    this.seen = Math.max(this.seen, this.covered);
    for (const reading of this.live()) {
      // This reader joined during the read, at an earlier id.
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
        // A full reader falls behind and does not delay the others.
        reading.live = false;
        return;
      }
      const { bytes, entries } = framesAfter(page.framesOf(reading.reader.extended ?? false), reading.lastId);
      reading.lastId = page.lastId;
      metrics.streamEntries.inc(entries);
      if (entries > 0) reading.full = !reading.reader.deliver(bytes);
    }
    const version = page.end?.version ?? page.lastVersion;
    // Compares versions to detect an outdated page. Ids do not work: a reader may resume with an id after the end of the log.
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
