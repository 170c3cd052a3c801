import { randomBytes } from 'node:crypto';
import { type Logger } from '#platform';
import type { LiveBus, WakeListener } from './bus.ts';
import { metrics } from './metrics.ts';

/** What carries wake-ups between processes. It logs its own failures. */
export interface WakeTransport {
  /** To every process that listens, in one round trip. Rejects when that failed, at the latest after some seconds. */
  send(messages: string[]): Promise<void>;
  /** Whether it can send and hear now, as far as is known without asking. */
  isUp(): boolean;
  close(): Promise<void>;
}

/**
 * Publishes within this time of the last round trip go out together in the next: at most 1,000 messages a second and process,
 * whatever it commits. With 5 ms a single client waited 3 ms more for the end of its Run.
 */
const GATHER_MS = 1;
/** Threads whose wake-ups wait for a silent server; those of more are dropped, and found by the slow poll. */
const MAX_GATHERED = 10_000;
/** PostgreSQL takes less than 8,000 bytes a notification. */
const MAX_MESSAGE_LENGTH = 7_900;
const CLOSE_WITHIN_MS = 500;

/**
 * The gathering that both transports share: the first wake-up goes out at once, those of the next millisecond in one round trip, and
 * one round trip is under way at a time. Of a Thread only the highest version is sent. Listeners of this process are woken
 * at once and directly; what comes back of its own messages is ignored.
 */
export class GatheringBus implements LiveBus {
  private readonly sender = randomBytes(6).toString('base64url');
  private readonly listeners = new Set<WakeListener>();
  private readonly transport: WakeTransport;
  private gathered = new Map<string, number>();
  private window: NodeJS.Timeout | null = null;
  private sending: Promise<void> | null = null;
  private closed = false;

  constructor(
    openTransport: (receive: (message: string) => void) => WakeTransport,
    private readonly logger: Logger,
  ) {
    this.transport = openTransport((message) => this.receive(message));
  }

  publish(threadId: string, version: number): void {
    if (this.closed) return;
    this.wake(threadId, version);
    const gathered = this.gathered.get(threadId);
    if (gathered === undefined && this.gathered.size >= MAX_GATHERED)
      return metrics.wakeups.inc({ direction: 'dropped' });
    if (gathered === undefined || gathered < version) this.gathered.set(threadId, version);
    this.sendIfDue();
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
    const messages = encode(this.sender, this.gathered);
    const { size } = this.gathered;
    this.gathered = new Map();
    if (size === 0) return;
    // Hints that cannot be sent are lost: keeping them would be a backlog of what the poll has found by then.
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
      if (threadId === undefined) continue;
      metrics.wakeups.inc({ direction: 'received' });
      this.wake(threadId, Number(version));
    }
  }

  private wake(threadId: string, version: number): void {
    for (const listener of this.listeners) {
      try {
        listener(threadId, version);
      } catch (error) {
        // The publisher has just committed: it must not take our bug for its own failure.
        this.logger.error({ err: error, threadId }, 'wake-up listener failed');
      }
    }
  }
}

/** Others may write to the channel: what is not a wake-up is ignored. */
const WAKE = /^([0-9A-Z]{26}):(\d{1,10})$/;

function encode(sender: string, wakes: ReadonlyMap<string, number>): string[] {
  const messages: string[] = [];
  let message = sender;
  for (const [threadId, version] of wakes) {
    const wake = ` ${threadId}:${version}`;
    if (message.length + wake.length > MAX_MESSAGE_LENGTH) {
      messages.push(message);
      message = sender;
    }
    message += wake;
  }
  if (message !== sender) messages.push(message);
  return messages;
}
