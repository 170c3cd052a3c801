import { randomBytes } from 'node:crypto';
import { type Logger } from '#platform';
import type { LiveBus, WakeListener } from './bus.ts';
import { metrics } from './metrics.ts';
import { decodeNews, encodeNews, joined, MAX_VERSION, type News } from './news.ts';

/** A transport of wake-ups between processes. It logs its own failures. */
export interface WakeTransport {
  /** The most characters of a message. */
  readonly maxMessageLength: number;
  /** Sends to every listening process in one round trip. Rejects on failure, at the latest after some seconds. */
  send(messages: string[]): Promise<void>;
  /** Returns whether it can send and receive, as far as known without a request. */
  isUp(): boolean;
  close(): Promise<void>;
}

/**
 * Sends wake-ups of this many milliseconds together, so a process sends at most 1,000 messages a second. With 5 ms, a single
 * client waited 3 ms longer for the end of its Run.
 */
const GATHER_MS = 1;
/** The maximum of Threads whose wake-ups wait for a silent server. Others are dropped; the poll finds their versions. */
const MAX_GATHERED = 10_000;
/** UTF-16 units of entries that wait for a silent server. Others are dropped; the readers of their Threads read them. */
const MAX_GATHERED_NEWS = 1024 * 1024;
const CLOSE_WITHIN_MS = 500;

/**
 * A bus that gathers wake-ups for either transport. Sends the first one immediately and those of the next millisecond in one round
 * trip, one trip at a time. Sends only the highest version of a Thread, with the entries up to it if they fit. Wakes the listeners
 * of this process directly and ignores its own messages.
 */
export class GatheringBus implements LiveBus {
  private readonly sender = randomBytes(6).toString('base64url');
  private readonly listeners = new Set<WakeListener>();
  private readonly transport: WakeTransport;
  private gathered = new Map<string, Gathered>();
  private gatheredNews = 0;
  private window: NodeJS.Timeout | null = null;
  private sending: Promise<void> | null = null;
  private closed = false;

  constructor(
    openTransport: (receive: (message: string) => void) => WakeTransport,
    private readonly logger: Logger,
  ) {
    this.transport = openTransport((message) => this.receive(message));
  }

  publish(threadId: string, version: number, news?: News): void {
    if (this.closed) return;
    this.wake(threadId, version, news);
    const before = this.gathered.get(threadId);
    if (before === undefined && this.gathered.size >= MAX_GATHERED)
      return metrics.wakeups.inc({ direction: 'dropped' });
    if (before === undefined) this.gather(threadId, version, news);
    else if (before.version < version) this.gather(threadId, version, before.news && news && joined(before.news, news));
    this.sendIfDue();
  }

  private gather(threadId: string, version: number, news: News | undefined): void {
    this.gatheredNews -= this.gathered.get(threadId)?.news?.events.length ?? 0;
    const size = news?.events.length ?? 0;
    const fits = this.gatheredNews + size <= MAX_GATHERED_NEWS;
    this.gathered.set(threadId, { version, news: fits ? news : undefined });
    if (fits) this.gatheredNews += size;
  }

  isUp(): boolean {
    return this.transport.isUp();
  }

  onWake(listener: WakeListener): () => void {
    this.listeners.add(listener);
    return () => void this.listeners.delete(listener);
  }

  async close(): Promise<void> {
    if (this.closed) return;
    this.closed = true;
    if (this.window) clearTimeout(this.window);
    this.window = null;
    const unsent = (this.sending ?? Promise.resolve()).then(() => this.sendGathered());
    const patience = new Promise((resolve) => setTimeout(resolve, CLOSE_WITHIN_MS).unref());
    await Promise.race([unsent, patience]);
    await this.transport.close();
  }

  private sendIfDue(): void {
    if (this.window !== null || this.sending !== null || this.gathered.size === 0) return;
    this.window = setTimeout(() => {
      this.window = null;
      this.sendIfDue();
    }, GATHER_MS);
    this.sending = this.sendGathered().finally(() => {
      this.sending = null;
      if (!this.closed) this.sendIfDue();
    });
  }

  private async sendGathered(): Promise<void> {
    const messages = encode(this.sender, this.gathered, this.transport.maxMessageLength);
    const { size } = this.gathered;
    this.gathered = new Map();
    this.gatheredNews = 0;
    if (size === 0) return;
    // Unsent hints are dropped, because the poll would find those versions before a backlog is sent.
    const isSent = await this.transport.send(messages).then(
      () => true,
      () => false,
    );
    metrics.wakeups.inc({ direction: isSent ? 'sent' : 'dropped' }, size);
  }

  private receive(message: string): void {
    const [sender, ...wakes] = message.split(' ');
    if (sender === this.sender) return;
    for (const wake of wakes) {
      const [, threadId, version] = WAKE.exec(wake) ?? [];
      if (Number(version) > MAX_VERSION) continue;
      const entries = threadId === undefined ? decodeNews(wake) : null;
      if (entries !== null) this.wake(entries.threadId, entries.news.version, entries.news);
      if (threadId === undefined) continue;
      metrics.wakeups.inc({ direction: 'received' });
      this.wake(threadId, Number(version));
    }
  }

  private wake(threadId: string, version: number, news?: News): void {
    for (const listener of this.listeners) {
      try {
        listener(threadId, version, news);
      } catch (error) {
        // The publisher has just committed, so a bug here must not look like a failure of the commit.
        this.logger.error({ err: error, threadId }, 'wake-up listener failed');
      }
    }
  }
}

/** The form of a wake-up. Other messages are ignored, because anyone may write to the channel. */
const WAKE = /^([0-9A-Z]{26}):(\d{1,10})$/;

interface Gathered {
  version: number;
  /** The entries up to the version, if they are known and fit. */
  news: News | undefined;
}

/** Puts the entries of a Thread before its wake-up, which then causes no read. Older releases understand only the wake-up. */
function encode(sender: string, gathered: ReadonlyMap<string, Gathered>, maxLength: number): string[] {
  const messages: string[] = [];
  let message = sender;
  for (const [threadId, { version, news }] of gathered) {
    const wake = ` ${threadId}:${version}`;
    const whole = news === undefined ? wake : ` ${encodeNews(threadId, news)}${wake}`;
    const added = sender.length + whole.length > maxLength ? wake : whole;
    if (message.length + added.length > maxLength) {
      messages.push(message);
      message = sender;
    }
    message += added;
  }
  if (message !== sender) messages.push(message);
  return messages;
}
