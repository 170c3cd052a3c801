import { Cluster, type Redis } from 'ioredis';
import { ConfigError } from '#platform';
import { refuseWrongRedis } from './refuse-wrong-redis.ts';

const clusterOf = (...infos: (() => Promise<string>)[]): Cluster => {
  const cluster = new Cluster(['redis://localhost'], { lazyConnect: true });
  jest.spyOn(cluster, 'nodes').mockReturnValue(infos.map((info) => ({ info }) as unknown as Redis));
  return cluster;
};
const unreachable = (): Promise<string> => Promise.reject(new Error('Connection is closed.'));
const evicting = async (): Promise<string> => 'redis_mode:cluster\r\nmaxmemory_policy:allkeys-lru\r\n';
const correct = async (): Promise<string> => 'redis_mode:cluster\r\nmaxmemory_policy:noeviction\r\n';

test('refuses a cluster with a wrong master although another master is unreachable', async () => {
  await expect(refuseWrongRedis(clusterOf(unreachable, evicting))).rejects.toThrow(ConfigError);
});

test('reports an unreachable master of a cluster if no other master is wrong', async () => {
  await expect(refuseWrongRedis(clusterOf(correct, unreachable))).rejects.toThrow('Connection is closed.');
  await refuseWrongRedis(clusterOf(correct, correct));
});
