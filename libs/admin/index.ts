export * from './admin.module.ts';
export * from './end-threads.ts';
export type * from './handlers.ts';
export { AdminRefused } from './refused.ts';
