import { describeWithPrivateRedis, eventually, faultProxy, startPrivateRedis, type FaultProxy } from '#testing';
import { AdminUnderTest } from './admin-under-test.testing.ts';

test('the overview reports an unreachable Redis, and shows all other data', async () => {
  // No server listens there.
  const admin = await AdminUnderTest.start({ REDIS_URL: 'redis://127.0.0.1:1' });
  try {
    const { overview } = await admin.do('getOverview');
    expect(overview.redis).toEqual({ status: 'away', version: null, latencyMs: null, usedBytes: null });
    const found = overview.problems.find(({ kind }) => kind === 'redis_away');
    expect(found).toMatchObject({ severity: 'warning', runs: [] });
    expect(overview.database.version).toMatch(/^\d/);
  } finally {
    await admin.stop();
  }
});

describeWithPrivateRedis('a queue in a killed Redis', () => {
  test('is reported with its effects, and all other data is shown', async () => {
    const redis = await startPrivateRedis();
    const admin = await AdminUnderTest.start({ QUEUE_URL: redis.url });
    const read = async () => (await admin.do('getOverview')).overview;
    /** Leaves out a slow database, which a busy test machine causes. */
    const problemsOf = ({ problems }: Awaited<ReturnType<typeof read>>) =>
      problems.filter(({ kind }) => kind !== 'database_slow').map(({ kind, severity }) => [kind, severity]);
    try {
      const isThere = async () => (expect(problemsOf(await read())).toEqual([['no_worker', 'warning']]), true);
      await eventually(isThere, { what: 'only a worker is missing' });
      await redis.kill();
      const seen = async () => ((next) => next.queue.offered === null && next)(await read());
      const overview = await eventually(seen, { what: 'the overview shows that the queue is unavailable' });
      expect([overview.redis?.status, overview.queue.backend]).toEqual(['away', 'redis']);
      expect(problemsOf(overview)).toEqual([
        ['redis_away', 'critical'],
        // It would be critical only if the dispatcher of a worker reported it.
        ['queue_away', 'warning'],
        ['no_worker', 'warning'],
      ]);
    } finally {
      await admin.stop();
      await redis.stop();
    }
  });
});

describeWithPrivateRedis('a queue in an unresponsive Redis', () => {
  test('is reported by the overview and the queue, and can be paused', async () => {
    const redis = await startPrivateRedis();
    const admin = await AdminUnderTest.start({ QUEUE_URL: redis.url });
    try {
      const isThere = async () => (await admin.do('getQueue')).queue.offered === 0;
      await eventually(isThere, { what: 'the queue answers' });
      redis.pause();
      const [{ overview }, { queue }, paused] = await Promise.all([
        admin.do('getOverview'),
        admin.do('getQueue'),
        admin.do('pauseQueue'),
      ]);
      expect([overview.queue.offered, queue.offered, paused.queue.offered]).toEqual([null, null, null]);
      expect(overview.problems.map(({ kind }) => kind)).toContain('queue_away');
      expect(paused.queue.pausedAt).not.toBeNull();
    } finally {
      redis.resume();
      await admin.stop();
      await redis.stop();
    }
  });
});

test('the overview returns 503 while PostgreSQL is unreachable', async () => {
  const proxies: FaultProxy[] = [];
  const through = async (url: string): Promise<string> => {
    const proxy = await faultProxy(Number(new URL(url).port || 5432));
    proxies.push(proxy);
    return proxy.through(url);
  };
  const admin = await AdminUnderTest.start({}, { through });
  const [proxy] = proxies;
  try {
    await admin.do('getOverview');
    proxy!.cut();
    // The last answer is cached for a short time.
    const unavailable = async () => ((answer) => answer.status !== 200 && answer)(await admin.send('getOverview', {}));
    const { status, headers, json, text } = await eventually(unavailable, { what: 'the cached answer has expired' });
    expect([status, headers.get('retry-after')]).toEqual([503, '1']);
    expect(json).toMatchObject({ error: { code: 'internal_error' } });
    expect(text).not.toMatch(/127\.0\.0\.1|ECONN/);
    proxy!.resume();
    const back = async () => (await admin.send('getOverview', {})).status === 200;
    await eventually(back, { what: 'the overview is available again' });
  } finally {
    proxy?.resume();
    await admin.stop();
    await proxy?.close();
  }
});
