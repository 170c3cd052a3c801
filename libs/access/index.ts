export * from './access-store.ts';
export * from './access.module.ts';
export * from './authenticator.ts';
export * from './caller.ts';
export * from './operator-sessions.ts';
export * from './policy.ts';
export * from './rate-limiter.ts';
export { isToken } from './token-format.ts';
export * from './token-limits.ts';
