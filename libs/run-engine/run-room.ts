import { NoRoom } from '#agents';
import type { ByteBudget, ByteHold } from '#platform';

/**
 * Bytes of memory for each stored byte of a transcript: the rows from the database, the events, the messages, and a provider's
 * request (docs/adr/0028).
 */
const BYTES_A_STORED_BYTE = 6;

/**
 * Bounds of the random time for which a Run waits for room in its slot, milliseconds. It is random, so that Runs that began to
 * wait together do not all release their slots at the same time.
 */
const SHORTEST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 2_000;

/** The delay of a Run that got no room, milliseconds: a second more for each attempt, up to the longest. */
const DELAY_AN_ATTEMPT_MS = 1_000;
const LONGEST_DELAY_MS = 30_000;

/** Returns a random delay. Runs that were handed over together must not return together and fill all slots again. */
export function delayWithoutRoom(attempt: number): number {
  return Math.round(Math.min(attempt * DELAY_AN_ATTEMPT_MS, LONGEST_DELAY_MS) * (0.5 + Math.random() / 2));
}

export interface RunMemory {
  /** The room of all Runs of the process. */
  budget: ByteBudget;
  /** Default: a random time of 0.5 to 2 s. Milliseconds. */
  waitMs?: (() => number) | undefined;
}

/** Room that is released as a whole. */
export interface Room {
  /** Throws NoRoom. */
  makeRoom: (bytes: number) => void;
  release: () => void;
}

/** The part of the process's memory that one claimed Run holds. */
export class RunRoom {
  /** Whether the transcript has outgrown the room. No further step may begin then. */
  isFull = false;
  private hold: ByteHold | null = null;
  private ofTranscript = 0;
  private ofStep = 0;
  private ofCalls = 0;
  private storedBytes = 0;

  constructor(
    private readonly memory: RunMemory,
    private readonly organizationId: string,
  ) {}

  /** Waits for the room of a transcript of `storedBytes`. Throws NoRoom after a while, and the signal's reason. */
  async reserve(storedBytes: number, signal: AbortSignal): Promise<void> {
    this.storedBytes = storedBytes;
    this.ofTranscript = storedBytes * BYTES_A_STORED_BYTE;
    this.hold = await this.waitFor(this.ofTranscript, signal);
  }

  /** Takes room for the growth of the transcript since it was read. It already uses memory, so it counts in any case. */
  growBy(bytes: number): void {
    this.ofTranscript = (this.storedBytes + bytes) * BYTES_A_STORED_BYTE;
    if (this.hold?.growTo(this.total) !== false) return;
    this.isFull = true;
    this.hold.count(this.total);
  }

  /** Returns room for the other data of a step. It counts as the transcript's, so it fits if there is nothing else. */
  forStep(): Room {
    return {
      makeRoom: (bytes) => {
        this.ofStep += bytes;
        if (this.hold?.growTo(this.total) !== false) return;
        const { total } = this;
        this.ofStep -= bytes;
        throw new NoRoom(total);
      },
      release: () => {
        this.ofStep = 0;
        this.hold?.growTo(this.total);
      },
    };
  }

  /**
   * Returns room for the data of one tool call, at most the organization's share. It is a separate hold, so a small call always
   * fits. If there is no room for it, all of it counts as the transcript's, so it fits if there is nothing else.
   */
  forCall(): Room {
    const own = this.openHold();
    let ofCall = 0;
    let isOfRun = false;
    return {
      makeRoom: (bytes) => {
        if (!isOfRun && own.growTo(own.bytes + bytes)) return;
        const before = own.bytes;
        const needed = before + bytes;
        const isTooLarge = ofCall + needed > this.memory.budget.share;
        own.growTo(0);
        if (isTooLarge || this.hold?.growTo(this.total + needed) !== true) {
          // Waiting Runs may have taken its room.
          own.count(before);
          throw new NoRoom(needed);
        }
        isOfRun = true;
        ofCall += needed;
        this.ofCalls += needed;
      },
      release: () => {
        own.release();
        this.ofCalls -= ofCall;
        ofCall = 0;
        this.hold?.growTo(this.total);
      },
    };
  }

  openHold(): ByteHold {
    return this.memory.budget.hold(this.organizationId);
  }

  /** Releases the Run's room and waits. Returns whether there was room for `bytes` in time. */
  async waitInstead(bytes: number, signal: AbortSignal): Promise<boolean> {
    this.release();
    const hold = await this.waitFor(bytes, signal).catch(() => null);
    hold?.release();
    return hold !== null;
  }

  release(): void {
    this.hold?.release();
  }

  private get total(): number {
    return this.ofTranscript + this.ofStep + this.ofCalls;
  }

  private async waitFor(bytes: number, signal: AbortSignal): Promise<ByteHold> {
    const { budget, waitMs = randomWaitMs } = this.memory;
    const longEnough = AbortSignal.timeout(waitMs());
    try {
      return await budget.reserve(this.organizationId, bytes, AbortSignal.any([signal, longEnough]));
    } catch {
      signal.throwIfAborted();
      throw new NoRoom(0);
    }
  }
}

function randomWaitMs(): number {
  return SHORTEST_WAIT_MS + Math.round(Math.random() * (LONGEST_WAIT_MS - SHORTEST_WAIT_MS));
}
