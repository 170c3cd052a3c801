export * from './errors.ts';
export * from './operation.ts';
export * from './operations.ts';
export * from './records.ts';
export * from './overview-records.ts';
export * from './thread-records.ts';
export * from './openapi.ts';
