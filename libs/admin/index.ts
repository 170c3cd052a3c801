export * from './admin.module.ts';
export { audited, type Actor } from './audit.ts';
export { BulkRunner } from './bulk/bulk-runner.ts';
export { purgeBulkActions } from './bulk/purge-bulk-actions.ts';
export * from './end-threads.ts';
export type * from './handlers.ts';
export { AdminRefused } from './refused.ts';
