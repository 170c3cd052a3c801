export * from './postgres/advisory-locks.ts';
export * from './process/byte-budget.ts';
export { configSchema, type Config } from './process/config.ts';
export {
  isOwnVariable,
  listsVariable,
  parseFolders,
  parseList,
  parseSigningKeys,
  type SigningKey,
  type ToolServerFolder,
} from './process/config-lists.ts';
export * from './redis/connect-redis.ts';
export * from './postgres/database.ts';
export { databaseAddress, databaseUser } from './postgres/database-address.ts';
export * from './embedded-postgres/embedded-postgres.ts';
export * from './error-chain.ts';
export * from './policy/file-quota.ts';
export * from './telemetry/health.ts';
export * from './process/heartbeat.ts';
export * from './postgres/leader-loop.ts';
export * from './process/large-json.ts';
export * from './outbound/limit-body.ts';
export * from './process/load-config.ts';
export * from './telemetry/logger.ts';
export * from './process/main-process.ts';
export * from './telemetry/metrics.ts';
export * from './telemetry/metrics-listener.ts';
export * from './process/new-id.ts';
export * from './outbound/outbound-fetch.ts';
export * from './platform.module.ts';
export { ownTurn, pauseIfLong } from './process/own-turn.ts';
export * from './policy/policy-cache.ts';
export * from './policy/policy-versions.ts';
export * from './policy/policy-watch.ts';
export * from './postgres/read-sql.ts';
export { isRedisUrl, parseRedisAddress } from './redis/redis-address.ts';
export * from './postgres/sql.ts';
export * from './postgres/statement-group.ts';
export * from './postgres/statement-groups.ts';
export { startTracing } from './telemetry/start-tracing.ts';
export * from './process/throw-startup-error.ts';
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
} from './telemetry/tracing.ts';
export { countUtf8, encodingOf, UTF_8, wholeCharacters, type TextEncoding } from './text-encoding.ts';
export * from './postgres/transaction.ts';
export * from './process/semaphore.ts';
export * from './process/until-aborted.ts';
export * from './process/version.ts';
