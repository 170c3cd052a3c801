import { queryTimeout } from '../postgres/sql.ts';

/** The interval of heartbeats. Others consider a process dead 10 s after its last beat, so it may miss three. */
const BEAT_MS = 3_000;

/** A limit for the statement of a beat, so that it fails on a silent connection before the next beat is due. */
export const BEAT_TIMEOUT = queryTimeout(2_000);

export interface Heartbeat {
  /** Starts no more beats. Resolves when the beat in progress has ended. */
  stop(): Promise<void>;
}

/**
 * Calls `beat` now, and every `beatMs` milliseconds unless a beat is in progress. Resolves after the first beat. `beat` must
 * not fail.
 */
export async function startHeartbeat(beat: () => Promise<void>, beatMs = BEAT_MS): Promise<Heartbeat> {
  let beating: Promise<void> | null = null;
  const beatOnce = (): Promise<void> => (beating ??= beat().finally(() => (beating = null)));
  await beatOnce();
  const timer = setInterval(() => void beatOnce(), beatMs);
  return {
    stop: async () => {
      clearInterval(timer);
      await beating;
    },
  };
}
