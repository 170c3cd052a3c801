import { splitUtf8 } from './stored-text.ts';

export type PieceType = 'assistant.text_added' | 'assistant.thinking_added';
export interface Delta {
  type: PieceType;
  data: { text: string; step?: number };
}

/** Deltas are stored the first at once, then at most every 50 ms or 2 KiB (docs/spec/decisions.md#log). */
const EVERY_MS = 50;
/** Also the largest delta: what gathers while an append is slow goes as several, so that readers' frames stay small. */
const PIECE_BYTES = 2 * 1024;

/** Gathers deltas of text in their order, and knows when they are to be sent. */
export class DeltaGatherer {
  private deltas: Delta[] = [];
  private bytes = 0;
  private lastBytes = 0;
  private takenAt = -Infinity;

  /** Each delta carries the number of its step, if it is known. */
  constructor(private readonly step?: number) {}

  add(type: PieceType, text: string): void {
    let rest = text;
    while (rest !== '') {
      const last = this.deltas.at(-1);
      const room = last?.type === type ? PIECE_BYTES - this.lastBytes : 0;
      const [head, tail] = splitUtf8(rest, room >= 4 ? room : PIECE_BYTES);
      const joined = room >= 4 && last !== undefined;
      if (joined) last.data.text += head;
      else this.deltas.push({ type, data: this.step === undefined ? { text: head } : { text: head, step: this.step } });
      const bytes = Buffer.byteLength(head);
      this.lastBytes = joined ? this.lastBytes + bytes : bytes;
      this.bytes += bytes;
      rest = tail;
    }
  }

  /** In how many milliseconds the deltas are to be sent; null when there are none. */
  dueIn(now: number): number | null {
    if (this.deltas.length === 0) return null;
    return this.bytes >= PIECE_BYTES ? 0 : Math.max(0, this.takenAt + EVERY_MS - now);
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
  /** The number of the step within its claim; default: not known. */
  step?: number | undefined;
  claim: { record: (deltas: Delta[]) => Promise<void> };
  /** Milliseconds of a clock that does not go back. */
  now?: () => number;
  /** Calls back once, in so many milliseconds; answers how to cancel it. */
  setTimer?: (callBack: () => void, ms: number) => () => void;
}

/** Sends gathered deltas, one append at a time; meanwhile the next ones gather. */
export class DeltaWriter {
  private readonly gatherer: DeltaGatherer;
  private readonly claim: DeltaWriterOptions['claim'];
  private readonly now: () => number;
  private readonly setTimer: (callBack: () => void, ms: number) => () => void;
  private sending: Promise<void> | null = null;
  private cancelTimer: (() => void) | null = null;
  private failure: { error: unknown } | null = null;
  private closed = false;

  constructor({ step, claim, now = () => performance.now(), setTimer = startTimer }: DeltaWriterOptions) {
    this.gatherer = new DeltaGatherer(step);
    this.claim = claim;
    this.now = now;
    this.setTimer = setTimer;
  }

  /** Throws what an append threw. */
  add(type: PieceType, text: string): void {
    this.throwFailure();
    this.gatherer.add(type, text);
    this.sendWhenDue();
  }

  /** Sends no more; answers what was not sent, for the step's own append. Throws what an append threw. */
  async finish(): Promise<Delta[]> {
    this.close();
    await this.sending;
    this.throwFailure();
    return this.gatherer.take(this.now());
  }

  /** Sends no more and forgets the rest: the step's output is void. */
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
    if (dueInMs === null) return;
    if (dueInMs > 0) {
      this.cancelTimer = this.setTimer(() => this.sendWhenDue(), dueInMs);
      return;
    }
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
  const timer = setTimeout(callBack, ms);
  return () => clearTimeout(timer);
}
