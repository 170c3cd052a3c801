export * from './config.ts';
export * from './database.ts';
export * from './embedded-postgres.ts';
export * from './leader-loop.ts';
export * from './logger.ts';
export * from './main-process.ts';
export * from './platform.module.ts';
export * from './sql.ts';
