export * from './end-threads.ts';
