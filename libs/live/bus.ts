import type { News } from './news.ts';

/** Injection token of the process's LiveBus. */
export const LIVE_BUS = Symbol('LIVE_BUS');

/** Receives the new version of a Thread, perhaps with the entries up to it. Must not throw and must not block. */
export type WakeListener = (threadId: string, version: number, news?: News) => void;

/**
 * Wake-ups between processes, which announce new versions of Threads. They are hints: they can be lost, late, repeated or
 * reordered. A caller that must not miss any also polls, like LiveHub.
 */
export interface LiveBus {
  /** Sends a wake-up. Never throws or blocks; if the server is unavailable, the hint is lost. */
  publish(threadId: string, version: number, news?: News): void;
  /** Adds a listener for wake-ups of all processes, including this one. Returns a function that removes it. */
  onWake(listener: WakeListener): () => void;
  /** Returns whether wake-ups can be sent and received now. If not, only polling finds new versions. */
  isUp(): boolean;
  /** Sends the gathered wake-ups, waits briefly for them, and closes the connections. */
  close(): Promise<void>;
}
