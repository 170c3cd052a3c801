export type * from './append.ts';
export { nameOf } from './append.ts';
export * from './handle-commands.ts';
export { readRole } from './database-role.ts';
export * from './migrate.ts';
export * from './thread-reads.ts';
export * from './thread-store.ts';
export * from './event-store.module.ts';
