export * from './fold.ts';
export * from './rebuild.ts';
export * from './run-summary.ts';
export * from './thread-summary.ts';
export * from './verify.ts';
