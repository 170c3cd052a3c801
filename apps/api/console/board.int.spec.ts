import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { request, type IncomingMessage } from 'node:http';
import { RUN_QUEUE, type RunQueue } from '#run-queue';
import { describeWithRedis, eventually, redisUrl } from '#testing';
import { ApiUnderTest } from '../api-under-test.testing.ts';
import { originOf, signIn, type Signed } from './signed-in.testing.ts';

// Real: HTTP, PostgreSQL, Redis, BullMQ and Bull Board.

interface Shown {
  name: string;
  counts: Record<string, number>;
  statuses: string[];
  jobs: { id: string; data: object; externalUrl: { href: string } }[];
  isPaused: boolean;
}

function suite(backend: string, queueUrl: () => string | undefined): void {
  let api: ApiUnderTest;
  let signed: Signed;
  let name: string;

  beforeAll(async () => {
    name = `board-${randomBytes(6).toString('hex')}`;
    const url = queueUrl();
    api = await ApiUnderTest.start({
      settings: { QUEUE_NAME: name, ...(url === undefined ? {} : { QUEUE_URL: url }) },
    });
    const { token } = await api.access.mintToken({ kind: 'operator', name: 'Grace' });
    signed = await signIn(api, token);
  });
  afterAll(() => api.stop());

  const ask = (path: string, init: RequestInit = {}) =>
    fetch(`${originOf(api)}/console/queues${path}`, { redirect: 'manual', ...init });
  /** Sends the path unchanged. `fetch` would normalize it. */
  const sendRaw = async (path: string, cookie: string): Promise<string> => {
    const sent = request(originOf(api), { path: `/console/queues${path}`, headers: { cookie } }).end();
    const [answer] = (await once(sent, 'response')) as [IncomingMessage];
    return (await answer.setEncoding('utf8').toArray()).join('');
  };
  const get = (path: string) => ask(path, { headers: signed.reads });
  /** Adds a job like the dispatcher. */
  const enqueue = (run: { runId: string; threadId: string; dispatch: number }) =>
    api.app.get<RunQueue>(RUN_QUEUE).enqueue([run]);
  const readJson = async <T>(path: string): Promise<T> => {
    const response = await get(path);
    if (response.status !== 200) throw new Error(`${response.status} ${await response.text()}`);
    return (await response.json()) as T;
  };
  const shown = async (status = 'latest'): Promise<Shown> => {
    const { queues } = await readJson<{ queues: Shown[] }>(`/api/queues?activeQueue=${name}&status=${status}&page=1`);
    expect(queues).toHaveLength(1);
    return queues[0]!;
  };

  it(`shows waiting and active jobs with links to their Runs (${backend})`, async () => {
    const threadId = await api.newThread({ text: 'a text that no job holds' });
    const runId = (await api.get(`/threads/${threadId}`)).json.run.id;
    await enqueue({ runId, threadId, dispatch: 1 });
    const { jobs, statuses, ...queue } = await shown('waiting');
    expect(queue).toMatchObject({ name, isPaused: false, readOnlyMode: true, allowRetries: false });
    expect(statuses).toEqual(['latest', 'active', 'waiting', 'delayed']);
    const data = { runId, threadId, dispatch: 1 };
    const externalUrl = { displayText: 'Run', href: `/console/runs/${runId}` };
    expect(jobs).toMatchObject([{ id: `${runId}-1`, data, externalUrl }]);
    expect(jobs[0]!.data).toEqual(data);
    expect(await readJson(`/api/queues/${name}/${runId}-1`)).toMatchObject({ status: 'waiting' });

    let finish: () => void = () => undefined;
    const handled = new Promise<void>((resolve) => (finish = resolve));
    const consumer = api.app.get<RunQueue>(RUN_QUEUE).consume(() => handled, 1);
    try {
      await eventually(async () => (await shown()).counts['active'] === 1, { what: 'it is active' });
      expect((await shown('active')).jobs).toHaveLength(1);
    } finally {
      finish();
      await consumer.close();
    }
    const metrics = () => readJson<{ completed: { meta: { count: number } } }>(`/api/queues/${name}/metrics`);
    await eventually(async () => (await metrics()).completed.meta.count === 1, { what: 'BullMQ has counted it' });
    expect((await shown()).counts).toMatchObject({ active: 0, waiting: 0 });
    expect(await readJson('/api/redis/stats')).toMatchObject({ backend });
  });

  it(`shows the pause of Spool instead of BullMQ’s (${backend})`, async () => {
    for (const [path, isPaused] of Object.entries({ '/queue/pause': true, '/queue/resume': false })) {
      const changed = await fetch(`${originOf(api)}/admin/v1${path}`, { method: 'POST', headers: signed.headers });
      expect(changed.status).toBe(200);
      await eventually(async () => (await shown()).isPaused === isPaused, { what: `it is paused: ${isPaused}` });
    }
  });

  it(`has no way to change a job or the queue (${backend})`, async () => {
    const threadId = await api.newThread({ text: 'Hello' });
    const runId = (await api.get(`/threads/${threadId}`)).json.run.id;
    await enqueue({ runId, threadId, dispatch: 1 });
    const ofQueue = ['pause', 'resume', 'empty', 'obliterate', 'promote', 'add', 'clean/wait', 'retry/failed'];
    const ofJob = ['retry', 'clean', 'promote', 'update-data', 'delay', 'priority'];
    const actions = [...ofQueue, ...ofJob.map((action) => `${runId}-1/${action}`)].map((action) => `${name}/${action}`);
    for (const action of ['pause', 'resume', ...actions]) {
      for (const method of ['PUT', 'POST', 'PATCH', 'DELETE']) {
        const { status } = await ask(`/api/queues/${action}`, { method, headers: signed.headers });
        expect([method, action, status]).toEqual([method, action, 405]);
      }
    }
    expect(await shown()).toMatchObject({ isPaused: false, counts: { waiting: 1 } });
  });

  it(`requires an operator’s session (${backend})`, async () => {
    for (const path of ['', '/', `/queue/${name}?status=active`]) {
      const sent = await ask(path, { headers: { accept: 'text/html,*/*;q=0.8' } });
      const login = `/console/login?next=${encodeURIComponent(`/queues${path}`)}`;
      expect([sent.status, sent.headers.get('location')]).toEqual([302, login]);
    }
    const others = { authorization: `Bearer ${api.token}` };
    for (const path of ['/api/queues', '/spool-key.js', '/nowhere']) {
      for (const headers of [{}, others]) expect((await ask(path, { headers })).status).toBe(401);
    }
    const { cookie } = signed;
    for (const headers of [{ cookie: 'spool_session=x' }, { cookie }, { 'spool-page-key': signed.pageKey }]) {
      expect((await ask('/api/queues', { headers })).status).toBe(401);
    }
    for (const path of ['', '/x/../api/queues', '/./api/queues', '/%2e/api/queues', '/x\\..\\api/queues']) {
      const page = await sendRaw(path, 'spool_session=x');
      expect([path, page.slice(0, 15), page.includes(name)]).toEqual([path, '<!DOCTYPE html>', false]);
    }
  });

  it(`loads nothing from another origin (${backend})`, async () => {
    for (const path of ['', '/', `/queue/${name}`, `/queue/${name}/x-1`]) {
      const page = await get(path);
      const html = await page.text();
      expect([path, page.status, page.headers.get('content-type')]).toEqual([path, 200, 'text/html; charset=utf-8']);
      expect(page.headers.get('content-security-policy')).toMatch(
        /^default-src 'none'; script-src 'self'; style-src 'self' 'sha256-/,
      );
      expect(html).not.toMatch(/(src|href)="(https?:)?\/\//);
      expect(html).not.toMatch(/ style=|<style|<%/);
      expect(html).toContain('<base href="/console/queues/" />');
      const files = [...html.matchAll(/(?:src|href)="((?:static\/|spool)[^"]+)"/g)].map(([, file]) => file!);
      expect(files.length).toBeGreaterThan(5);
      for (const file of files) expect([file, (await get(`/${file}`)).status]).toEqual([file, 200]);
    }
    for (const path of ['/static/nothing.js', '/static/..%2f..%2fpackage.json']) {
      expect([path, (await get(path)).status]).toEqual([path, 404]);
    }
  });

  it(`has only the reads of its page (${backend})`, async () => {
    for (const path of [
      'nowhere',
      'job-schedulers',
      `queues/${name}/%00`,
      `queues/${name}/rate-limit`,
      `queues/${name}/default-job-options`,
    ]) {
      expect([path, (await get(`/api/${path}`)).status]).toEqual([path, 404]);
    }
    for (const [query, name] of [
      ['page=1e300', 'page'],
      ['page=-1', 'page'],
      ['page=0', 'page'],
      ['page=1&page=2', 'page'],
      ['page=1&status=bogus', 'status'],
      ['status=%00', 'status'],
      ['activeQueue=%25', 'activeQueue'],
    ]) {
      const refused = await get(`/api/queues?${query}`);
      const message = `query.${name}: is not a value that the page of the queue sends`;
      expect([query, refused.status, await refused.json()]).toEqual([
        ...[query, 400],
        { error: { code: 'invalid_request', message } },
      ]);
    }
  });
}

it('returns 503 if the queue was unavailable when the process started', async () => {
  // No server listens there.
  const api = await ApiUnderTest.start({ settings: { QUEUE_URL: 'redis://127.0.0.1:1' } });
  try {
    const { token } = await api.access.mintToken({ kind: 'operator', name: 'Grace' });
    const { reads } = await signIn(api, token);
    const ask = async (path: string) =>
      (await fetch(`${originOf(api)}/console/queues${path}`, { headers: reads })).status;
    expect(await Promise.all(['', '/api/queues', '/api/redis/stats'].map(ask))).toEqual([200, 503, 503]);
  } finally {
    await api.stop();
  }
});

describe('on PostgreSQL', () => suite('postgres', () => undefined));
describeWithRedis('on Redis', () => suite('redis', () => redisUrl().url));
