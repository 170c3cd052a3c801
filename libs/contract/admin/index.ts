export { ADMIN_LIMITS } from './parts.ts';
export * from './errors.ts';
export * from './operation.ts';
export * from './operations.ts';
export * from './records.ts';
export * from './bulk-records.ts';
export * from './overview-records.ts';
export * from './thread-records.ts';
export * from './openapi.ts';
