import { untilAborted } from './until-aborted.ts';

/** Limits of a `ByteBudget`, bytes. */
export interface BudgetLimits {
  /** All holds of the process together. */
  process: number;
  /**
   * All holds of one organization, or of one address while the caller is not known. Beyond its first hold, an owner may
   * hold at most `share / (process - share)` times the bytes left free. If `share` is half of `process`, one owner gets half
   * of it, and each of two gets a third.
   */
  share: number;
  /** A hold of at most this size is not counted and always fits. Default: 0. */
  small?: number;
}

/** A caller that waits in `reserve`. */
interface Waiter {
  owner: string;
  hold: ByteHold;
  bytes: number;
  admitted: () => void;
}

/** Bytes that a process holds in memory, admitted before they are read (docs/adr/0024, docs/adr/0028). */
export class ByteBudget {
  private held = 0;
  private readonly byOwner = new Map<string, number>();
  /** The part of `held` that is kept (`ByteHold.keep`). */
  private kept = 0;
  private readonly keptByOwner = new Map<string, number>();
  /** Oldest first. */
  private waiting: readonly Waiter[] = [];

  /** `onChange` receives the number of bytes held and of waiting callers. */
  constructor(
    private readonly limits: BudgetLimits,
    private readonly onChange: (bytes: number, waiting: number) => void = () => undefined,
  ) {}

  /** The maximum that one owner may hold, bytes. */
  get share(): number {
    return this.limits.share;
  }

  /** Opens an empty hold. It grows only while there is room, and never waits. */
  hold(owner: string): ByteHold {
    return this.newHold(owner, false);
  }

  /**
   * Waits in turn until there is room for the bytes, and returns the hold. The owner that holds least is next. An owner beyond
   * its share is passed over. The hold always fits if its owner and the process hold nothing but kept bytes. Rejects with the
   * signal's reason.
   */
  async reserve(owner: string, bytes: number, signal: AbortSignal): Promise<ByteHold> {
    const hold = this.newHold(owner, true);
    if (this.counted(bytes) === 0) {
      hold.growTo(bytes);
      return hold;
    }
    const turn = new Promise<void>((admitted) => {
      this.waiting = [...this.waiting, { owner, hold, bytes, admitted }];
    });
    this.admitWaiting();
    try {
      await untilAborted(turn, signal);
      return hold;
    } catch (error) {
      this.waiting = this.waiting.filter((waiter) => waiter.hold !== hold);
      hold.release();
      this.admitWaiting();
      throw error;
    }
  }

  private newHold(owner: string, isReserved: boolean): ByteHold {
    return new ByteHold((from, to, { isForced, isKept }) => {
      if (!isForced && !this.fits(owner, from, to, isReserved)) return false;
      this.resize(owner, from, to, isKept);
      return true;
    });
  }

  private heldBy(owner: string): number {
    return this.byOwner.get(owner) ?? 0;
  }

  /** Returns the counted bytes of a hold of this size. */
  private counted(bytes: number): number {
    return bytes <= (this.limits.small ?? 0) ? 0 : bytes;
  }

  private fitsShare(owner: string, from: number, to: number, isReserved: boolean): boolean {
    const others = this.heldBy(owner) - this.counted(from);
    if (isReserved && others === (this.keptByOwner.get(owner) ?? 0)) return true;
    const { process, share } = this.limits;
    const free = process - this.held + this.counted(from) - this.counted(to);
    // While others hold something, everyone's share shrinks, so that an owner that holds nothing finds room.
    const fairShare = others === 0 || share === process ? share : (free * share) / (process - share);
    return others + this.counted(to) <= Math.min(share, fairShare);
  }

  private fits(owner: string, from: number, to: number, isReserved = false): boolean {
    if (this.counted(to) <= this.counted(from)) return true;
    const others = this.held - this.counted(from);
    const fitsProcess = others + this.counted(to) <= this.limits.process || (isReserved && others === this.kept);
    return fitsProcess && this.fitsShare(owner, from, to, isReserved);
  }

  private resize(owner: string, from: number, to: number, isKept: boolean): void {
    const more = this.counted(to) - this.counted(from);
    this.held += more;
    add(this.byOwner, owner, more);
    if (isKept) {
      this.kept += more;
      add(this.keptByOwner, owner, more);
    }
    if (more < 0) this.admitWaiting();
    this.onChange(this.held, this.waiting.length);
  }

  private admitWaiting(): void {
    for (let next = this.nextInTurn(); next !== null; next = this.nextInTurn()) {
      const { hold, bytes, admitted } = next;
      this.waiting = this.waiting.filter((waiter) => waiter !== next);
      hold.growTo(bytes);
      admitted();
    }
    this.onChange(this.held, this.waiting.length);
  }

  /** Returns the waiter whose turn it is; null if there is none, or if there is no room for it in the process. */
  private nextInTurn(): Waiter | null {
    const beyond = new Set<string>();
    for (const waiter of this.waiting.toSorted((a, b) => this.heldBy(a.owner) - this.heldBy(b.owner))) {
      const { owner, bytes } = waiter;
      if (beyond.has(owner)) continue;
      if (this.fitsShare(owner, 0, bytes, true)) return this.fits(owner, 0, bytes, true) ? waiter : null;
      beyond.add(owner);
    }
    return null;
  }
}

function add(byOwner: Map<string, number>, owner: string, bytes: number): void {
  const sum = (byOwner.get(owner) ?? 0) + bytes;
  if (sum > 0) byOwner.set(owner, sum);
  else byOwner.delete(owner);
}

/** Returns false, and changes nothing, if there is no room. A forced change always succeeds. */
type Resize = (from: number, to: number, how: { isForced: boolean; isKept: boolean }) => boolean;

/** The part of the budget that one request, Run or message holds. */
export class ByteHold {
  private held = 0;
  private isOver = false;
  private isKept = false;

  constructor(private readonly resize: Resize) {}

  get bytes(): number {
    return this.held;
  }

  /** Changes the hold to this total of bytes. Returns false, and changes nothing, beyond a limit. */
  growTo(bytes: number): boolean {
    return this.change(bytes, false);
  }

  /** Changes the hold to this total of bytes already in memory, which counts even beyond a limit. */
  count(bytes: number): void {
    this.change(bytes, true);
  }

  /**
   * Marks an empty hold as kept for long, so that waiting for its release is useless. It counts like any other. But a reserved
   * hold that fits only if nothing else is held also fits beside it.
   */
  keep(): void {
    this.isKept = true;
  }

  /** Releases all bytes. The hold cannot grow again. */
  release(): void {
    this.growTo(0);
    this.isOver = true;
  }

  private change(bytes: number, isForced: boolean): boolean {
    if (this.isOver) return false;
    const from = this.held;
    // Set first, because a release immediately admits waiting callers.
    this.held = bytes;
    if (this.resize(from, bytes, { isForced, isKept: this.isKept })) return true;
    this.held = from;
    return false;
  }
}
