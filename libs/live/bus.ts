/** Injection token of the process's LiveBus. */
export const LIVE_BUS = Symbol('LIVE_BUS');

/** Hears that a Thread has moved to a version. Must not throw and must not block. */
export type WakeListener = (threadId: string, version: number) => void;

/**
 * Wake-ups between processes: "Thread so-and-so has moved". Hints, which may be lost, late, repeated or reordered; who
 * must not miss any looks for itself from time to time (LiveHub's poll).
 */
export interface LiveBus {
  /** Never throws and is never awaited: a server that is away or silent costs the caller nothing, and the hint is lost. */
  publish(threadId: string, version: number): void;
  /** Adds a listener for wake-ups of all processes, this one's own included; returns what removes it. */
  onWake(listener: WakeListener): () => void;
  /** Whether wake-ups can be sent and heard now; else who follows a Thread looks for itself. */
  isUp(): boolean;
  /** Hands out what was gathered, waits shortly for it, and lets go of the connections. */
  close(): Promise<void>;
}
