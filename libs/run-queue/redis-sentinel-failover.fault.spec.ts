import { describeWithPrivateRedis, startRedisSentinels } from '#testing';
import { describeFailOver } from './redis-failover.testsuite.ts';

describeWithPrivateRedis('run queue at a fail-over by Redis Sentinels', () =>
  describeFailOver(async () => {
    const sentinels = await startRedisSentinels();
    return { ...sentinels, masterOf: () => sentinels.master() };
  }),
);
