export * from './dispatcher.ts';
export * from './limited-runs.ts';
export * from './open-run-queue.ts';
export * from './queue-controls.ts';
export * from './run-offers.ts';
export * from './run-queue.module.ts';
export * from './run-queue.ts';
export * from './worker-registry.ts';
