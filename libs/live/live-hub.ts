import type { LogPage, ThreadStore } from '#event-store';
import { isDatabaseUnavailable, isLargeJson, ownTurn, Semaphore, type Logger } from '#platform';
import type { LiveBus } from './bus.ts';
import { framePage, type FramedPage, type RenderEntry } from './framed-page.ts';
import { pageOf } from './news.ts';
import { OpenThread, type LogReader, type Reading, type ThreadReads } from './open-thread.ts';

export interface LiveHubOptions {
  store: ThreadStore;
  bus: LiveBus;
  render: RenderEntry;
  logger: Logger;
}

/** The poll interval, milliseconds: the largest delay after a lost wake-up. */
const POLL_MS = 2_000;
/** Concurrent reads, fewer than the connections of the pool. Ten thousand new readers must leave some connections to requests. */
const READS_AT_ONCE = 4;
/** Limits of one delivery, and so of the memory of a slow reader. */
const PAGE = { maxEvents: 200, maxBytes: 64 * 1024 } as const;
const ANSWER_TIMEOUT_MS = 5_000;

/**
 * The readers of Threads in this process. Wake-ups bring new entries, or show which Threads to read. A slow poll, one query for all
 * open Threads, finds missed versions and deleted Threads. While the database is unavailable, readers wait.
 */
export class LiveHub {
  private readonly options: LiveHubOptions;
  private readonly threads = new Map<string, OpenThread>();
  private readonly pageReads = new Semaphore(READS_AT_ONCE);
  private readonly ignoreWakes: () => void;
  private readonly poll: NodeJS.Timeout;
  private polling = false;
  private isUnavailable = false;

  private readonly reads: ThreadReads = {
    readPage: (threadId, afterEventId) => this.readPage(threadId, afterEventId),
    failed: (error) => this.failed(error),
    released: (thread) => {
      if (this.threads.get(thread.id) === thread) this.threads.delete(thread.id);
    },
  };

  constructor(options: LiveHubOptions) {
    this.options = options;
    this.ignoreWakes = options.bus.onWake((threadId, version, news) =>
      this.threads.get(threadId)?.wake(
        version,
        news && {
          ...{ fromVersion: news.fromVersion, version: news.version },
          page: () => pageOf(threadId, news, options.render),
        },
      ),
    );
    this.poll = setInterval(() => void this.pollThreads(), POLL_MS).unref();
  }

  /** The number of readers. */
  get readers(): number {
    let readers = 0;
    for (const thread of this.threads.values()) readers += thread.readers;
    return readers;
  }

  /**
   * Keeps the wake-ups of the Thread for a reader that will open, so that a page read after this call can be its first one. Returns
   * a function that ends this. Call it once the reader is open or will not come.
   */
  expectReader(threadId: string): () => void {
    return this.threadOf(threadId).expectReader();
  }

  /**
   * Starts to deliver entries after the id of the reader, history first. Never delivers before this returns. `first` is the page
   * after its id, read while the reader was expected; default: the hub reads it.
   */
  open(reader: LogReader, first: LogPage | null = null): Reading {
    return this.threadOf(reader.threadId).add(reader, first && framePage(first, this.options.render));
  }

  private threadOf(threadId: string): OpenThread {
    let thread = this.threads.get(threadId);
    if (thread === undefined) this.threads.set(threadId, (thread = new OpenThread(threadId, this.reads)));
    return thread;
  }

  /** Stops reading, without ending the readers. */
  close(): void {
    this.ignoreWakes();
    clearInterval(this.poll);
    this.threads.clear();
  }

  private async readPage(threadId: string, afterEventId: string): Promise<FramedPage | null> {
    const { store, render } = this.options;
    const page = await this.pageReads.take(() =>
      store.readLogPage(threadId, afterEventId, { ...PAGE, timeoutMs: ANSWER_TIMEOUT_MS }),
    );
    if (page !== null && isLargeJson(page.events)) await ownTurn();
    return page && framePage(page, render);
  }

  private async pollThreads(): Promise<void> {
    if (this.polling || this.threads.size === 0) return;
    this.polling = true;
    try {
      const known = new Map([...this.threads.values()].map(({ id, covered }) => [id, covered]));
      // Bypasses the semaphore, because many readers would delay the poll.
      const moved = await this.options.store.readMovedThreads(known, ANSWER_TIMEOUT_MS);
      if (this.isUnavailable) this.options.logger.info('database available again; streams continue');
      this.isUnavailable = false;
      for (const { threadId, version } of moved) {
        const thread = this.threads.get(threadId);
        if (version !== null && version < known.get(threadId)!) thread?.movedBack(version);
        else thread?.movedTo(version);
      }
      for (const thread of this.threads.values()) thread.retry();
    } catch (error) {
      this.failed(error);
    } finally {
      this.polling = false;
    }
  }

  private failed(error: unknown): void {
    const { logger } = this.options;
    if (!isDatabaseUnavailable(error)) return logger.error({ err: error }, 'stream read failed');
    if (!this.isUnavailable) logger.warn({ err: error }, 'database unavailable; streams wait');
    this.isUnavailable = true;
  }
}
