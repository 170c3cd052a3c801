export * from './task.ts';
export { TaskPool } from './task-pool.ts';
export * from './task-pool.module.ts';
