export { TRANSCRIPT_BOUNDS } from './bounded-transcript.ts';
export * from './lease-keeper.ts';
export { LeaseRenewals, type LeaseReport } from './lease-renewals-worker.mjs';
export * from './lease-thread.ts';
export * from './reaper.ts';
export * from './run-engine.module.ts';
export * from './run-engine.ts';
export * from './worker-loop.ts';
