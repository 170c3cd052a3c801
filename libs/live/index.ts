export * from './bus.ts';
export * from './live-hub.ts';
export * from './live.module.ts';
export { newsOf } from './news.ts';
export type { LogReader, Reading, ReaderEnd } from './open-thread.ts';
export * from './open-live-bus.ts';
export * from './wakeups-part.ts';
