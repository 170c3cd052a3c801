import { loadConfig } from '#platform';
import { describeWithPrivateRedis, startRedisCluster, startRedisSentinels } from '#testing';
import { runDoctor, type DoctorParts } from './doctor.ts';

// Real: Redis servers, Sentinels, a cluster. The other checks lack their dependencies and fail.

async function checkRedis(QUEUE_URL: string): Promise<{ status: string; message: string } | undefined> {
  const checks = await runDoctor({ config: loadConfig({ QUEUE_URL }) } as DoctorParts);
  return checks.find(({ name }) => name === 'redis');
}

describeWithPrivateRedis('spool doctor', () => {
  test('names the master of a Sentinel group, and warns about a master without a replica', async () => {
    const sentinels = await startRedisSentinels();
    const { url, servers } = sentinels;
    try {
      const ok = {
        status: 'ok',
        message: expect.stringMatching(/^Redis \S+ \(master "main"\), .* noeviction$/) as string,
      };
      expect(await checkRedis(url)).toMatchObject(ok);
      const current = await sentinels.master();
      await Promise.all(servers.filter((server) => server !== current).map((server) => server.kill()));
      const alone = expect.stringMatching(/: masters without a replica: 1\.$/) as string;
      expect(await checkRedis(url)).toMatchObject({ status: 'warning', message: alone });
    } finally {
      await sentinels.stop();
    }
  }, 60_000);

  test('counts the masters of a cluster, and fails if one may evict jobs', async () => {
    const cluster = await startRedisCluster();
    const { url, nodes } = cluster;
    try {
      const ok = { status: 'ok', message: expect.stringMatching(/^Redis \S+ \(3 masters\), .* noeviction$/) as string };
      expect(await checkRedis(url)).toMatchObject(ok);
      await nodes[1]!.ask('CONFIG', 'SET', 'maxmemory-policy', 'volatile-lru');
      const evicts = expect.stringMatching(/has maxmemory-policy volatile-lru and may delete jobs/) as string;
      expect(await checkRedis(url)).toMatchObject({ status: 'failed', message: evicts });
    } finally {
      await cluster.stop();
    }
  }, 60_000);
});
