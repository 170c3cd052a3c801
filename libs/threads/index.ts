export * from './refusal.ts';
export * from './thread-reader.ts';
export * from './threads.module.ts';
export * from './threads.ts';
