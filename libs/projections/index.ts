export { withColumns, withRfc3339 } from './columns.ts';
export * from './fold.ts';
export * from './rebuild.ts';
export * from './run-summary.ts';
export * from './thread-summary.ts';
export * from './verify.ts';
