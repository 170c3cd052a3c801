/**
 * Processes, proxies and servers that a spec file has started and must end. Kept on globalThis, because Jest's
 * environment, which checks that nothing is left (environment.ts), has other module instances than the spec file.
 */
const key = Symbol.for('spool.testing.running');

export interface Running {
  what: string;
  /** Ends it at once and for good; called only for what the spec file forgot. */
  end(): void;
}

type Holder = Record<symbol, Set<Running> | undefined>;

export function runningIn(global: object): Set<Running> {
  return ((global as Holder)[key] ??= new Set());
}

/** Returns what to call when it has ended. */
export function trackRunning(running: Running): () => void {
  const all = runningIn(globalThis);
  all.add(running);
  return () => void all.delete(running);
}
