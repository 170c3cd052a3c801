import type { ThreadStore } from '#event-store';
import { isDatabaseUnavailable, isLargeJson, ownTurn, Semaphore, type Logger } from '#platform';
import type { LiveBus } from './bus.ts';
import { framePage, type FramedPage, type RenderEntry } from './framed-page.ts';
import { OpenThread, type LogReader, type Reading, type ThreadReads } from './open-thread.ts';

export interface LiveHubOptions {
  store: ThreadStore;
  bus: LiveBus;
  render: RenderEntry;
  logger: Logger;
}

/** A wake-up that was lost costs so much at most. */
const POLL_MS = 2_000;
/** Fewer than the pool has connections: ten thousand readers that come at once must leave some to the requests. */
const READS_AT_ONCE = 4;
/** A page is what one reader is given at once, and so what a slow one holds. */
const PAGE = { maxEvents: 200, maxBytes: 64 * 1024 } as const;
const ANSWER_TIMEOUT_MS = 5_000;

/**
 * Everybody of this process who follows a Thread. Wake-ups say where to read; the slow poll, one query for all open
 * Threads, finds what they missed, and Threads that were deleted. With the database away readers stay and wait.
 */
export class LiveHub {
  private readonly options: LiveHubOptions;
  private readonly threads = new Map<string, OpenThread>();
  private readonly turns = new Semaphore(READS_AT_ONCE);
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
    this.ignoreWakes = options.bus.onWake((threadId, version) => this.threads.get(threadId)?.wake(version));
    this.poll = setInterval(() => void this.pollThreads(), POLL_MS).unref();
  }

  /** How many read now. */
  get readers(): number {
    let readers = 0;
    for (const thread of this.threads.values()) readers += thread.readers;
    return readers;
  }

  /** Delivers from after the id on, history first; never before this returns. */
  open(reader: LogReader): Reading {
    let thread = this.threads.get(reader.threadId);
    if (thread === undefined) this.threads.set(reader.threadId, (thread = new OpenThread(reader.threadId, this.reads)));
    return thread.add(reader);
  }

  /** Stops reading; whoever still reads is told nothing more. */
  close(): void {
    this.ignoreWakes();
    clearInterval(this.poll);
    this.threads.clear();
  }

  private async readPage(threadId: string, afterEventId: string): Promise<FramedPage | null> {
    const { store, render } = this.options;
    const page = await this.turns.take(() =>
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
      // Without waiting for a turn: it must not come late because many readers do.
      const moved = await this.options.store.readMovedThreads(known, ANSWER_TIMEOUT_MS);
      if (this.isUnavailable) this.options.logger.info('database available again; streams continue');
      this.isUnavailable = false;
      for (const { threadId, version } of moved) this.threads.get(threadId)?.movedTo(version);
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
