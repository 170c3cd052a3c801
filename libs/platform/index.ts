export * from './advisory-locks.ts';
export * from './byte-budget.ts';
export { configSchema, type Config } from './config.ts';
export { isOwnVariable, parseFolders, parseList, type ToolServerFolder } from './config-lists.ts';
export * from './connect-redis.ts';
export * from './database.ts';
export { databaseAddress, databaseUser } from './database-address.ts';
export * from './embedded-postgres.ts';
export * from './file-quota.ts';
export * from './health.ts';
export * from './heartbeat.ts';
export * from './leader-loop.ts';
export * from './large-json.ts';
export * from './limit-body.ts';
export * from './load-config.ts';
export * from './logger.ts';
export * from './main-process.ts';
export * from './metrics.ts';
export * from './metrics-listener.ts';
export * from './new-id.ts';
export * from './outbound-fetch.ts';
export * from './platform.module.ts';
export { ownTurn, pauseIfLong } from './own-turn.ts';
export * from './policy-cache.ts';
export * from './policy-versions.ts';
export * from './policy-watch.ts';
export * from './read-sql.ts';
export { isRedisUrl, parseRedisAddress } from './redis-address.ts';
export * from './sql.ts';
export { startTracing } from './start-tracing.ts';
export * from './throw-readable.ts';
export {
  isTracing,
  noteFailure,
  spanFrom,
  SpanKind,
  traced,
  tracedFrom,
  traceHeaders,
  traceParent,
  within,
  type Attributes,
  type Span,
  type SpanAbout,
  type TraceOrigin,
} from './tracing.ts';
export { countUtf8, encodingOf, UTF_8, wholeCharacters, type TextEncoding } from './text-encoding.ts';
export * from './transaction.ts';
export * from './turns.ts';
export * from './until-aborted.ts';
export * from './version.ts';
