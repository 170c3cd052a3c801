import { BOUNDS } from '#domain';
import { splitUtf8 } from './stored-text.ts';

export type DeltaType = 'assistant.text_added' | 'assistant.thinking_added';
export interface Delta {
  type: DeltaType;
  data: { text: string; step?: number };
}

/**
 * The first deltas are stored at the end of the event-loop turn in which they arrive, later ones every 50 ms or 2 KiB
 * (docs/spec/decisions.md#log). If they were stored immediately, an answer that arrives whole would take two appends.
 */
const EVERY_MS = 50;
/** Also the largest delta. Text gathered during a slow append is split, so that readers' frames stay small. */
const MAX_DELTA_BYTES = BOUNDS.answers.delta.value;

/** Gathers deltas of text in order, and decides when to send them. */
export class DeltaGatherer {
  private deltas: Delta[] = [];
  private bytes = 0;
  private lastBytes = 0;
  private takenAt = -Infinity;

  /** `step` is the number of the step in each delta, if it is known. */
  constructor(private readonly step?: number) {}

  add(type: DeltaType, text: string): void {
    let rest = text;
    while (rest !== '') {
      const last = this.deltas.at(-1);
      const room = last?.type === type ? MAX_DELTA_BYTES - this.lastBytes : 0;
      const [head, tail] = splitUtf8(rest, room >= 4 ? room : MAX_DELTA_BYTES);
      const joined = room >= 4 && last !== undefined;
      if (joined) last.data.text += head;
      else this.deltas.push({ type, data: this.step === undefined ? { text: head } : { text: head, step: this.step } });
      const bytes = Buffer.byteLength(head);
      this.lastBytes = joined ? this.lastBytes + bytes : bytes;
      this.bytes += bytes;
      rest = tail;
    }
  }

  /** Returns after how many milliseconds the deltas are due; null if there are none. */
  dueIn(now: number): number | null {
    if (this.deltas.length === 0) return null;
    return this.bytes >= MAX_DELTA_BYTES ? 0 : Math.max(0, this.takenAt + EVERY_MS - now);
  }

  take(now: number): Delta[] {
    const { deltas } = this;
    this.deltas = [];
    this.bytes = 0;
    this.takenAt = now;
    return deltas;
  }
}

export interface DeltaWriterOptions {
  /** The number of the step within its claim; default: unknown. */
  step?: number | undefined;
  claim: { record: (deltas: Delta[]) => Promise<void> };
  /** Returns milliseconds of a monotonic clock. */
  now?: () => number;
  /** Calls back once, after `ms` milliseconds, at the earliest after this turn. Returns a function that cancels it. */
  setTimer?: (callBack: () => void, ms: number) => () => void;
}

/** Sends gathered deltas, one append at a time. Meanwhile it gathers the next ones. */
export class DeltaWriter {
  /** The number of the step, if it is known. */
  readonly step: number | undefined;
  private readonly gatherer: DeltaGatherer;
  private readonly claim: DeltaWriterOptions['claim'];
  private readonly now: () => number;
  private readonly setTimer: (callBack: () => void, ms: number) => () => void;
  private sending: Promise<void> | null = null;
  private cancelTimer: (() => void) | null = null;
  private failure: { error: unknown } | null = null;
  private closed = false;

  constructor({ step, claim, now = () => performance.now(), setTimer = startTimer }: DeltaWriterOptions) {
    this.step = step;
    this.gatherer = new DeltaGatherer(step);
    this.claim = claim;
    this.now = now;
    this.setTimer = setTimer;
  }

  /** Adds text. Throws what an append threw. */
  add(type: DeltaType, text: string): void {
    this.throwFailure();
    this.gatherer.add(type, text);
    this.sendWhenDue();
  }

  /** Stops sending. Returns the deltas that were not sent, for the step's own append. Throws what an append threw. */
  async finish(): Promise<Delta[]> {
    this.close();
    await this.sending;
    this.throwFailure();
    return this.gatherer.take(this.now());
  }

  /** Stops sending and drops the other deltas, because the step's output is void. */
  close(): void {
    this.closed = true;
    this.cancelTimer?.();
    this.cancelTimer = null;
  }

  private sendWhenDue(): void {
    if (this.closed || this.sending !== null || this.failure !== null) return;
    const dueInMs = this.gatherer.dueIn(this.now());
    this.cancelTimer?.();
    this.cancelTimer = null;
    if (dueInMs !== null) this.cancelTimer = this.setTimer(() => this.send(), dueInMs);
  }

  private send(): void {
    this.cancelTimer = null;
    this.sending = this.claim.record(this.gatherer.take(this.now())).then(
      () => this.sent(),
      (error: unknown) => {
        this.failure = { error };
        this.sent();
      },
    );
  }

  private sent(): void {
    this.sending = null;
    this.sendWhenDue();
  }

  private throwFailure(): void {
    if (this.failure !== null) throw this.failure.error;
  }
}

function startTimer(callBack: () => void, ms: number): () => void {
  if (ms === 0) {
    const turn = setImmediate(callBack);
    return () => clearImmediate(turn);
  }
  const timer = setTimeout(callBack, ms);
  return () => clearTimeout(timer);
}
