export * from './answers.ts';
export * from './errors.ts';
export * from './openapi.ts';
export * from './operations.ts';
export * from './records.ts';
export * from './requests.ts';
export * from './scalars.ts';
export * from './sse.ts';
