export * from './eventually.ts';
export * from './fault-proxy.ts';
export * from './fixed-clock.ts';
export { startPrivatePostgres, type PrivatePostgres } from './private-postgres.ts';
export { startPrivateRedis, type PrivateRedis } from './private-redis.ts';
export { describeWithPrivateRedis, describeWithRedis, redisUrl } from './redis.ts';
export * from './spawn-node.ts';
export { createTestDatabase, type TestDatabase } from './test-database.ts';
export { eventuallyWithin, expectWithin, timedTest } from './timed-test.ts';
