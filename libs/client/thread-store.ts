import {
  currentRun,
  openQuestions,
  reduceThread,
  SpoolError,
  type CurrentRun,
  type LogEntry,
  type Message,
  type MessagesPage,
  type OpenQuestion,
  type Run,
  type SendOptions,
  type StreamStatus,
  type Thread,
  type ThreadMessages,
  type ThreadUsage,
} from './index.ts';
import { delay, jitteredBackoff } from './wait.ts';

/** What a page shows of a Thread. Parts that did not change stay the same objects. */
export interface ThreadView {
  messages: readonly Message[];
  /** The Run that is active, else the last one; null if there is none. */
  run: CurrentRun | null;
  /** Whether a Run is queued, works, or waits for a person. */
  isActive: boolean;
  /** Whether a message is sent with `send`, until the view shows its Run. */
  isSending: boolean;
  /** What people are asked. */
  questions: readonly OpenQuestion[];
  /** Tokens of the model steps that ended since the page was opened. */
  usage: ThreadUsage;
  status: StreamStatus;
  /** Why it is reconnecting or has ended; else null. */
  error: SpoolError | null;
  /** Whether the present has been shown, at least once. */
  caughtUp: boolean;
  /** Whether there are messages before these. */
  hasEarlier: boolean;
}

const NO_USAGE: ThreadUsage = { inputTokens: 0, outputTokens: 0 };

export const EMPTY_VIEW: ThreadView = {
  ...{ messages: [], run: null, isActive: false, isSending: false, questions: [], usage: NO_USAGE },
  ...{ status: 'catching-up', error: null, caughtUp: false, hasEarlier: false },
};

/** How long the stream stays open after the last subscriber has left, for pages that hide and show at once. */
const LINGER_MS = 1_000;

/**
 * The messages of a Thread, kept current by one stream for all its subscribers. The first subscriber opens the stream. It
 * closes when no one has been subscribed for a second, and continues where it was when someone subscribes again.
 */
export class ThreadStore {
  private view = EMPTY_VIEW;
  private state: ThreadMessages = { messages: [] };
  private nextCursor: string | null = null;
  /** The last entry that `state` or `batch` contains; null before the first page. */
  private lastEventId: string | null = null;
  /** Entries for the next frame. */
  private batch: LogEntry[] = [];
  /** By Run, the last entry that its first page contains. For Runs of pages that were read after the newest one. */
  private readonly contained = new Map<string, string>();
  /** Messages that are sent, and Runs that the view does not show yet. */
  private readonly sending = new Set<object | string>();
  private frame: ReturnType<typeof setTimeout> | undefined;
  private readonly listeners = new Set<() => void>();
  private following: AbortController | null = null;
  private lingering: ReturnType<typeof setTimeout> | undefined;
  private loading: Promise<void> | null = null;

  constructor(private readonly thread: Thread) {}

  readonly getView = (): ThreadView => this.view;

  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    clearTimeout(this.lingering);
    if (this.following === null) this.start();
    return () => {
      this.listeners.delete(listener);
      if (this.listeners.size === 0) this.lingering = setTimeout(() => this.stop(), LINGER_MS);
    };
  };

  /** Sends a message. */
  async send(text: string, options?: SendOptions): Promise<Run> {
    const message = {};
    this.sending.add(message);
    this.show({});
    try {
      const run = await this.thread.send(text, options);
      if (this.state.messages.every(({ runId }) => runId !== run.id)) this.sending.add(run.id);
      return run;
    } finally {
      this.sending.delete(message);
      this.show({});
    }
  }

  /** Cancels the Run of the view. Does nothing if it has ended. */
  async interrupt(): Promise<void> {
    if (this.view.run !== null && this.view.isActive) await this.thread.interrupt(this.view.run.id);
  }

  /** Adds the page of messages before the first one. Does nothing if there is none, or while it is loaded. */
  loadEarlier(): Promise<void> {
    const before = this.nextCursor;
    if (before === null) return Promise.resolve();
    this.loading ??= this.thread
      .messages({ before })
      .then(({ messages, nextCursor }) => {
        this.applyBatch();
        this.state = { ...this.state, messages: [...messages, ...this.state.messages] };
        this.nextCursor = nextCursor;
        this.show({});
      })
      .finally(() => (this.loading = null));
    return this.loading;
  }

  private start(): void {
    const following = new AbortController();
    this.following = following;
    if (this.view.status !== 'catching-up') this.show({ status: 'catching-up', error: null });
    this.follow(following.signal).catch((error: unknown) => {
      if (following.signal.aborted) return;
      // The next subscriber tries again.
      this.following = null;
      this.show({ status: 'ended', error: error as SpoolError });
    });
  }

  private stop(): void {
    this.following?.abort();
    this.following = null;
  }

  private async follow(signal: AbortSignal): Promise<void> {
    if (this.lastEventId === null) await this.open(signal);
    const onStatus = (status: StreamStatus, error: SpoolError | null): void => {
      if (!signal.aborted) this.show({ status, error, ...(status === 'live' && { caughtUp: true }) });
    };
    const stream = this.thread.stream({ after: this.lastEventId ?? undefined, signal, onStatus });
    for await (const entry of stream) {
      // An abort may come while an entry is on its way here. Another stream will bring it again.
      if (signal.aborted) return;
      this.lastEventId = entry.id;
      if (entry.id <= (this.contained.get(entry.runId ?? '') ?? '')) continue;
      this.batch.push(entry);
      this.schedule();
    }
  }

  /** Reads the newest page, and pages before it until one has an answer: many messages can wait behind the active Run. */
  private async open(signal: AbortSignal): Promise<void> {
    const { lastEventId, ...newest } = await this.readPage(signal);
    let { messages, nextCursor } = newest;
    while (nextCursor !== null && messages.every(({ role }) => role === 'user')) {
      const page = await this.readPage(signal, nextCursor);
      for (const { runId } of page.messages) if (runId !== null) this.contained.set(runId, page.lastEventId);
      messages = [...page.messages, ...messages];
      nextCursor = page.nextCursor;
    }
    this.state = { messages };
    this.nextCursor = nextCursor;
    this.lastEventId = lastEventId;
    this.show({ status: 'catching-up', error: null });
  }

  /** Returns a page. Tries again for as long as it can succeed. */
  private async readPage(signal: AbortSignal, before?: string): Promise<MessagesPage> {
    for (let failures = 0; ;) {
      try {
        return await this.thread.messages({ ...(before && { before }), attempts: 1, signal });
      } catch (error) {
        if (!(error instanceof SpoolError && error.isRetryable)) throw error;
        this.show({ status: 'reconnecting', error });
        await delay(jitteredBackoff(++failures, error.retryAfter), signal);
      }
    }
  }

  /** Shows all entries of a frame together. A hidden page has no frames, also if it is hidden before the next one. */
  private schedule(): void {
    if (this.frame !== undefined) return;
    const apply = (): void => {
      if (this.frame === undefined) return;
      clearTimeout(this.frame);
      this.frame = undefined;
      this.show({});
    };
    this.frame = setTimeout(apply, HIDDEN_MS);
    (globalThis as Page).requestAnimationFrame?.(apply);
  }

  private applyBatch(): void {
    this.state = reduceThread(this.batch.splice(0), this.state);
  }

  private show(change: Partial<ThreadView>): void {
    this.applyBatch();
    const { messages, usage = NO_USAGE } = this.state;
    const { view } = this;
    let { run, questions } = view;
    if (messages !== view.messages) {
      run = kept(run, currentRun(messages));
      questions = kept(questions, openQuestions(messages));
      for (const { runId } of messages) if (runId !== null) this.sending.delete(runId);
    }
    const isActive = run !== null && ACTIVE.has(run.status);
    const derived = { run, isActive, questions, messages, usage, isSending: this.sending.size > 0 };
    this.view = { ...view, ...change, ...derived, hasEarlier: this.nextCursor !== null };
    for (const listener of this.listeners) listener();
  }
}

/** Returns the previous value if the next one is equal, so that a page does not show it again. */
function kept<Value>(previous: Value, next: Value): Value {
  return JSON.stringify(previous) === JSON.stringify(next) ? previous : next;
}

const ACTIVE: ReadonlySet<string> = new Set(['queued', 'running', 'waiting_input']);

/** How often a hidden page is updated. */
const HIDDEN_MS = 250;

/** The part of a browser's page that is used here. */
interface Page {
  requestAnimationFrame?: (callback: () => void) => void;
}
