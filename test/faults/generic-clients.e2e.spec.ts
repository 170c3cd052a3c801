import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { EventSource } from 'eventsource';
import type { Browser } from 'playwright-core';
import {
  describeInBrowser,
  eventually,
  isChromiumInstalled,
  spawnNode,
  startChromium,
  type SpawnedNode,
} from '#testing';
import { Balancer } from '../support/balancer.ts';
import { expectHealthy } from '../support/checks.ts';
import { createAcknowledged, getThread, postEvents, readLog, type Caller, type LogEntry } from '../support/client.ts';
import { blocksOf, CLIENT_PROGRAMS } from '../support/documented-clients.ts';
import { PageServer } from '../support/page-server.ts';
import { startSystem, upTo, type ApiProcess, type System } from '../support/system.ts';

/** Short, so that many keepalives come between the entries. */
const KEEPALIVE_MS = 100;
const FIRST = '0'.repeat(26);
const LATER = '7ZZZZZZZZZZZZZZZZZZZZZZZZZ';
const ROOT = join(import.meta.dirname, '../..');

const blocks = blocksOf('events.md').filter(({ language }) => language === 'js');
const programs = new Map(blocks.map(({ file, code }) => [file, code]));

/** A client of the documents. It follows until no Run is active and resolves with the entries that it received. */
type Follow = (threadId: string, lastId: string) => Promise<LogEntry[]>;

describe('clients that know nothing of Spool, on two pods behind a balancer', () => {
  let system: System;
  let first: ApiProcess;
  let second: ApiProcess;
  let balancer: Balancer;
  let pages: PageServer;
  let caller: Caller;
  let browser: Browser | undefined;
  let folder: string;
  const running: SpawnedNode[] = [];

  beforeAll(async () => {
    const env = { STREAM_KEEPALIVE_MS: String(KEEPALIVE_MS) };
    system = await startSystem({ env, manifest: { whenBusy: 'enqueue' } });
    [first, second] = await Promise.all([system.startApi(), system.startApi(), system.startWorker()]);
    balancer = await Balancer.start();
    await balancer.add(first.caller);
    caller = balancer.through(first.caller);
    pages = await PageServer.start(caller, programs);
    if (isChromiumInstalled()) browser = await startChromium();
    folder = await mkdtemp(join(tmpdir(), 'spool-clients-'));
    await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
    await Promise.all([...programs].map(([file, code]) => writeFile(join(folder, file), code)));
  }, 120_000);

  afterAll(async () => {
    await Promise.all([browser?.close(), ...running.map((process) => process.kill('SIGKILL'))]);
    await expectHealthy(system.database);
    await system.stop();
    await pages.close();
    await balancer.close();
    await rm(folder, { recursive: true, force: true });
  });

  /** A program that still has a connection or a timer does not exit. */
  const inNode =
    (file: string, call: (threadId: string, onEntry: string, lastId: string) => string): Follow =>
    async (threadId, lastId) => {
      const main = join(folder, `${threadId}-${lastId}-${file}`);
      const print = '(entry) => console.log(JSON.stringify(entry))';
      await writeFile(main, `import * as client from './${file}';\n${call(threadId, print, lastId)}`);
      const process = spawnNode(main, [], {
        BASE_URL: new URL('/api/v1', pages.origin).href,
        ACCESS_TOKEN: caller.token,
      });
      running.push(process);
      const { code } = await process.exited;
      expect({ file, code, output: code === 0 ? '' : process.output() }).toEqual({ file, code: 0, output: '' });
      const lines = process.output().split('\n').slice(0, -1);
      return lines.map((line) => JSON.parse(line) as LogEntry);
    };

  const inBrowser =
    (file: string): Follow =>
    (threadId, lastId) =>
      evaluate<LogEntry[]>(`import('/${file}').then(async ({ follow }) => {
        const entries = [];
        await follow('${threadId}', (entry) => entries.push(entry), '${lastId}');
        return entries;
      })`);

  async function evaluate<T>(script: string): Promise<T> {
    const page = await browser!.newPage();
    try {
      await page.goto(pages.origin);
      return await page.evaluate<T>(script);
    } finally {
      await page.close();
    }
  }

  const clients: [file: string, follow: Follow][] = [
    [
      'read.mjs',
      inNode(
        'read.mjs',
        (threadId, onEntry, lastId) =>
          `for await (const entry of client.readEvents('${threadId}', '${lastId}')) (${onEntry})(entry);`,
      ),
    ],
    ...CLIENT_PROGRAMS.node.map((file): [string, Follow] => [
      file,
      inNode(file, (threadId, onEntry, lastId) => `await client.follow('${threadId}', ${onEntry}, '${lastId}');`),
    ]),
    ...(isChromiumInstalled() ? CLIENT_PROGRAMS.browser : []).map((file): [string, Follow] => [file, inBrowser(file)]),
  ];

  /** Executes three Runs in turn; the first and the last ask a person. */
  async function startRuns(): Promise<string> {
    const { threadId } = await createAcknowledged(caller, '/confirm /pause 25 /pieces 120');
    const texts = ['/think 300ms /tool /pause 25 /pieces 60', '/confirm the last one, Ünïcödé 😀'];
    const messages = texts.map((text) => ({ type: 'user_message', text }));
    expect((await postEvents(caller, threadId, ...messages)).status).toBe(200);
    return threadId;
  }

  /** Waits for the Thread's nth question and answers it. */
  async function allow(threadId: string, n: number): Promise<void> {
    const question = async () =>
      (await readLog(caller, threadId)).filter(({ type }) => type === 'tool.confirmation.required')[n];
    const { content: requestId } = await eventually(question, { what: 'a person is asked', timeoutMs: 60_000 });
    const decision = { type: 'permission_decision', requestId, decision: 'allow_once' };
    expect((await postEvents(caller, threadId, decision)).status).toBe(200);
  }

  const passed = (threadId: string): string =>
    pages
      .streamsOf(threadId)
      .map(({ text }) => text)
      .join('');

  /** A Thread with a Run that has ended. */
  async function idleThread(): Promise<{ threadId: string; log: LogEntry[] }> {
    const { threadId } = await createAcknowledged(caller, 'Hello /pieces 5');
    const isIdle = async () => (await getThread(caller, threadId)).body.thread.status === 'IDLE';
    await eventually(isIdle, { what: 'the Run has ended', timeoutMs: 30_000 });
    return { threadId, log: await readLog(caller, threadId) };
  }

  test(
    'each receives the whole log once and in order, despite keepalives and a killed pod, and then stops',
    async () => {
      const threadIds = await Promise.all(clients.map(() => startRuns()));
      const followed = Promise.all(clients.map(([, follow], i) => follow(threadIds[i]!, FIRST)));
      followed.catch(() => undefined); // told where it is awaited
      await eventually(
        () => threadIds.every((id) => /confirmation\.required[^]*: keepalive\n: keepalive\n/.test(passed(id))),
        { what: 'all wait for a person, in silence', timeoutMs: 60_000 },
      );
      await Promise.all(threadIds.map((id) => allow(id, 0)));
      const pieces = (id: string): number => passed(id).split('agent.message.delta').length - 1;
      await eventually(() => threadIds.every((id) => pieces(id) >= 5), { what: 'all see the answer grow' });
      // All are on the first pod, and none is idle before the last question is answered.
      await balancer.add(second.caller);
      const before = threadIds.map((id) => pages.streamsOf(id).length);
      await first.process.kill('SIGKILL');
      const isBack = (id: string, i: number): boolean =>
        pages.streamsOf(id).some(({ status }, at) => at >= before[i]! && status === 200);
      await eventually(() => threadIds.every(isBack), { what: 'all are on the second pod', timeoutMs: 30_000 });
      await Promise.all(threadIds.map((id) => allow(id, 1)));

      const seen = await followed;
      for (const [i, [file]] of clients.entries()) {
        const log = await readLog(caller, threadIds[i]!);
        expect({ file, ids: seen[i]!.map(({ id }) => id) }).toEqual({ file, ids: log.map(({ id }) => id) });
        expect({ file, entries: seen[i] }).toEqual({ file, entries: log });
        expect(log.filter(({ type }) => type === 'run.completed')).toHaveLength(3);
        const later = pages.streamsOf(threadIds[i]!).slice(before[i]);
        // It resumed after the last entry that it had received.
        expect(log.map(({ id }) => id)).toContain(later.find(({ status }) => status === 200)?.lastEventId);
      }
    },
    upTo(120_000),
  );

  test.each(clients)(
    '%s stops at once on a 204, and at thread.idle for a later id',
    async (_, follow) => {
      const { threadId, log } = await idleThread();
      expect(await follow(threadId, log.at(-1)!.id)).toEqual([]);
      const statuses = new Set(pages.streamsOf(threadId).map(({ status }) => status));
      expect([...statuses]).toEqual([204]);
      expect(await follow(threadId, LATER)).toEqual([]);
      expect(pages.streamsOf(threadId).at(-1)).toMatchObject({ status: 200, lastEventId: LATER });
      expect(passed(threadId)).toContain('event: thread.idle');
    },
    60_000,
  );

  test.each(clients)(
    '%s misses nothing when a stream breaks between the id of an entry and its data',
    async (_, follow) => {
      const { threadId, log } = await idleThread();
      pages.breakInFrame(threadId, 3);
      expect(await follow(threadId, FIRST)).toEqual(log);
      const [broken, next] = pages.streamsOf(threadId);
      expect(broken!.text.endsWith(`\nid: ${log[2]!.id}\n`)).toBe(true);
      expect(next!.lastEventId).toBe(log[1]!.id);
    },
    60_000,
  );

  /** Expects that a client that only listens got every entry, and that a 204 stopped it. */
  function expectToStop(threadId: string, log: LogEntry[], data: string[]): void {
    expect(data.map((text) => JSON.parse(text) as LogEntry)).toEqual(log);
    const requests = pages.streamsOf(threadId).map(({ status, lastEventId }) => [status, lastEventId]);
    expect(requests).toEqual([
      [200, FIRST],
      [204, log.at(-1)!.id],
    ]);
  }

  test('the 204 stops an EventSource of the package eventsource that ignores thread.idle', async () => {
    const { threadId, log } = await idleThread();
    const data: string[] = [];
    const source = new EventSource(
      `${pages.origin}/api/v1/threads/${threadId}/events/stream?until=idle&after=${FIRST}`,
    );
    source.addEventListener('thread.event', (event) => data.push(event.data as string));
    source.onmessage = (event) => data.push(`a message: ${event.data}`);
    await eventually(() => source.readyState === EventSource.CLOSED, { what: 'it is closed' });
    expectToStop(threadId, log, data);
  }, 30_000);

  describeInBrowser('in a browser', () => {
    test('the 204 stops an EventSource of Chromium that ignores thread.idle', async () => {
      const { threadId, log } = await idleThread();
      const data = await evaluate<string[]>(`new Promise((resolve) => {
        const data = [];
        const source = new EventSource('/api/v1/threads/${threadId}/events/stream?until=idle&after=${FIRST}');
        source.addEventListener('thread.event', (event) => data.push(event.data));
        source.onmessage = (event) => data.push('a message: ' + event.data);
        source.onerror = () => source.readyState === EventSource.CLOSED && resolve(data);
      })`);
      expectToStop(threadId, log, data);
    }, 30_000);

    test('fetchEventSource with only onmessage parses every message and resolves', async () => {
      const { threadId, log } = await idleThread();
      const messages = await evaluate<{ event: string; data: string }[]>(`
        import('@microsoft/fetch-event-source').then(async ({ fetchEventSource }) => {
          const messages = [];
          const onmessage = ({ event, data }) => messages.push({ event, data: JSON.parse(data) });
          await fetchEventSource('/api/v1/threads/${threadId}/events/stream?until=idle', { onmessage });
          return messages;
        })`);
      expect(messages).toEqual([
        ...log.map((entry) => ({ event: 'thread.event', data: entry })),
        { event: 'thread.idle', data: {} },
      ]);
      expect(pages.streamsOf(threadId)).toHaveLength(1);
    }, 30_000);
  });
});
