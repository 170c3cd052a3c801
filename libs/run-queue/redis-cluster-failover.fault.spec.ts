import { describeWithPrivateRedis, startRedisCluster } from '#testing';
import { describeFailOver } from './redis-failover.testsuite.ts';

describeWithPrivateRedis('run queue at a fail-over in a Redis cluster', () =>
  describeFailOver(() => startRedisCluster()),
);
