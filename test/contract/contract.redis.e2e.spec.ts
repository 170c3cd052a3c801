import { describeWithRedis, redisUrl } from '#testing';
import { describeContract } from './support/contract.testsuite.ts';
import { World } from './support/world.ts';

describeWithRedis('the contract, jobs on Redis', () => {
  describeContract(new World('Redis', () => redisUrl().url), { areas: 'queue' });
});
