import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import { connect, createServer as createTcpServer, type AddressInfo, type Server as TcpServer } from 'node:net';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { reduceThread, type LogEntry, type ThreadMessages } from '#client';
import {
  describeInBrowser,
  describeWithPrivateRedis,
  eventually,
  spawnNode,
  startChromium,
  startPrivateRedis,
  type PrivateRedis,
  type SpawnedNode,
} from '#testing';
import { Balancer } from '../support/balancer.ts';
import { postEvents, send, type Caller } from '../support/client.ts';
import { ClientPackage } from '../support/client-package.ts';
import { startSystem, type ApiProcess, type System } from '../support/system.ts';

/** The package as applications install it: packed, beside its dependency, on Node and in Chromium. */
const run = promisify(execFile);
const PARSER = resolve('node_modules/eventsource-parser');
const LIMIT_MS = 60_000;

let installed: ClientPackage;

beforeAll(async () => {
  installed = await ClientPackage.install();
}, LIMIT_MS);

afterAll(() => installed.remove());

test('a program compiles under tsc --strict, with the types of a browser or of Node', async () => {
  await installed.write(
    'typed.ts',
    `import { reduceThread, Spool, SpoolError, type LogEntry, type ThreadMessages } from '@spool/client';
     const spool = new Spool({ baseUrl: 'https://spool.example.com/api/v1', getToken: async () => ({ token: 't' }) });
     export async function show(agentId: string): Promise<ThreadMessages> {
       const thread = await spool.agent(agentId).thread({ userId: 'ada', externalRef: 'order' });
       const { messages, lastEventId } = await thread.messages({ limit: 10 });
       let state: ThreadMessages = { messages };
       for await (const entry of thread.stream({ after: lastEventId })) state = reduceThread([entry], state);
       const bytes: Uint8Array = new TextEncoder().encode('x');
       await thread.send('Hello', { files: [{ name: 'x.txt', content: bytes }] });
       const answer = await (await thread.send('Hello')).answer({ timeoutMs: 1_000 }).catch((error: unknown) => {
         if (error instanceof SpoolError && error.code === 'timeout') return null;
         throw error;
       });
       if (answer?.status === 'waiting_input') await thread.decide(answer.questions[0]!.requestId, 'allow_once');
       return state;
     }
     export const nameOf = (entry: LogEntry): string | null => (entry.type === 'tool.use.started' ? entry.toolName : null);`,
  );
  const options = { strict: true, noUncheckedIndexedAccess: true, target: 'es2022', noEmit: true, types: [] };
  const compile = async (name: string, more: object): Promise<void> => {
    const config = await installed.write(
      `tsconfig.${name}.json`,
      JSON.stringify({ compilerOptions: { ...options, ...more }, include: ['typed.ts'] }),
    );
    const tsc = resolve('node_modules/typescript/bin/tsc');
    await run(process.execPath, [tsc, '-p', config]).catch((error: Error & { stdout: string }) => {
      throw new Error(error.stdout);
    });
  };
  const node = { module: 'nodenext', lib: ['es2022'], types: ['node'], typeRoots: [resolve('node_modules/@types')] };
  await compile('browser', { module: 'esnext', moduleResolution: 'bundler', lib: ['es2022', 'dom', 'dom.iterable'] });
  await compile('node', { ...node, skipLibCheck: true });
}, 60_000);

describeWithPrivateRedis('on two pods', () => {
  let redis: PrivateRedis;
  let system: System;
  let pods: ApiProcess[];
  let balancer: Balancer;
  let cutter: FrameCutter;
  let service: Caller;

  beforeAll(async () => {
    redis = await startPrivateRedis();
    system = await startSystem({ queueUrl: redis.url, env: { BROWSER_TOKEN_KEYS: `k1:${'a'.repeat(43)}=` } });
    pods = await Promise.all([system.startApi(), system.startApi()]);
    await system.startWorker();
    balancer = await Balancer.start();
    for (const { caller } of pods) await balancer.add(caller);
    const through = balancer.through(pods[0]!.caller);
    cutter = await FrameCutter.start(Number(new URL(through.baseUrl).port));
    service = { ...through, token: system.serviceToken.token };
  }, 90_000);

  afterAll(async () => {
    await cutter?.close();
    await balancer?.close();
    await system?.stop();
    await redis?.stop();
  });

  const start = (path: string, { baseUrl }: { baseUrl: string } = service): SpawnedNode =>
    spawnNode(path, [], { BASE_URL: baseUrl, ACCESS_TOKEN: service.token, AGENT_ID: service.agentId });

  async function outputOf(process: SpawnedNode): Promise<string[]> {
    const { code } = await process.exited;
    expect([code, code === 0 ? '' : process.output()]).toEqual([0, '']);
    return process.output().trim().split('\n');
  }

  test(
    'a program finds its Thread again, sends files, answers questions, and gets the answer',
    async () => {
      // As a bundler does that reads only `main`.
      const folder = './node_modules/@spool/client/';
      await installed.write('old.cjs', `require('${folder}' + require('${folder}package.json').main)`);
      const path = await installed.write('server.mjs', SERVER_PROGRAM);
      const [result] = (await outputOf(start(path))).map((line) => JSON.parse(line) as object);
      expect(result).toEqual({
        isSame: true,
        asked: ['send_note', 'send_note'],
        text: expect.stringMatching(/^You said: Two notes\n.*Note 1 was sent.*\n.*refused/) as string,
        late: ['request_decided', 'allow_once'],
        failed: ['run_not_completed', 'provider_rejected'],
        file: 'Order 1042',
        linked: 'Order 1042',
        waiting: 0,
        missing: ['not_found', 'thread_not_found', 404],
        slow: ['timeout', 'cancelled'],
        resumed: [true, 'cancelled'],
        tokenStart: 'spool_bt_',
        progress: [true, { sentBytes: 300_000, totalBytes: 300_000 }],
        created: ['You said: First', 'Named', 404],
        old: [expect.stringContaining('is an ES module'), '@spool/client needs Node 20.3 or later.'] as string[],
      });
    },
    LIMIT_MS,
  );

  describeInBrowser('with streams that are cut after every frame', () => {
    let site: Server;

    beforeAll(async () => {
      site = await startSite(() => service);
    });

    afterAll(() => {
      site.closeAllConnections();
      site.close();
    });

    test(
      'Node and Chromium get every entry once, though a pod is killed and Redis emptied',
      async () => {
        const created = await send<{ thread: { id: string } }>(service, 'POST', `/agents/${service.agentId}/threads`, {
          userId: 'ada',
          input: { type: 'user.message', content: [{ type: 'text', text: 'Cut me /confirm' }] },
        });
        const threadId = created.body.thread.id;
        const browser = await startChromium();
        try {
          const page = await browser.newPage();
          await page.goto(`http://127.0.0.1:${(site.address() as AddressInfo).port}`);
          const address = new URL(service.baseUrl);
          address.port = String(cutter.port);
          const baseUrl = address.href;
          const inNode = start(await installed.write('follow.mjs', FOLLOW_PROGRAM.replaceAll('THREAD_ID', threadId)), {
            baseUrl,
          });
          const inChromium = page.evaluate<Followed>(
            `import('/follow.mjs').then(({ follow }) => follow('${baseUrl}', '${threadId}'))`,
          );
          inChromium.catch(() => undefined); // Thrown where it is awaited.
          const readLog = async () =>
            (await send<{ events: LogEntry[] }>(service, 'GET', `/threads/${threadId}/events?limit=1000&extended=true`))
              .body.events;
          const question = await eventually(
            async () => (await readLog()).find(({ type }) => type === 'tool.confirmation.required'),
            { what: 'a person is asked', timeoutMs: 20_000 },
          );
          await pods[0]!.process.kill('SIGKILL');
          await redis.flushAll();
          const decision = { type: 'permission_decision', requestId: question.content, decision: 'allow_once' };
          // If an answer was lost, the decision may count already.
          const decide = async () => [200, 409].includes((await postEvents(service, threadId, decision)).status);
          await eventually(decide, { what: 'the other pod takes the decision' });
          const followed = [JSON.parse((await outputOf(inNode)).at(-1)!) as Followed, await inChromium];
          const log = await readLog();
          for (const { entries, state } of followed) {
            expect(entries).toEqual(log);
            // JSON has no undefined fields.
            expect(state).toEqual(JSON.parse(JSON.stringify(reduceThread(log))));
          }
          expect(cutter.cuts).toBeGreaterThan(log.length);
        } finally {
          await browser.close();
        }
      },
      LIMIT_MS,
    );
  });
});

interface Followed {
  entries: LogEntry[];
  state: ThreadMessages;
}

const SERVER_PROGRAM = `
import { Spool } from '@spool/client';
const { BASE_URL, ACCESS_TOKEN, AGENT_ID } = process.env;
const spool = new Spool({ baseUrl: BASE_URL, token: ACCESS_TOKEN });
const fails = (promise) => promise.then(() => { throw new Error('It succeeded.'); }, (error) => error);

const agent = spool.agent(AGENT_ID);
const thread = await agent.thread({ userId: 'ada', externalRef: 'order-1042' });
const again = await agent.thread({ userId: 'ada', externalRef: 'order-1042' });

const run = await thread.send('Two notes /confirm 2', { files: [{ name: 'order.txt', content: 'Order 1042' }] });
const { questions } = await run.answer();
await thread.decide(questions[0].requestId, 'allow_once');
const late = await fails(thread.decide(questions[0].requestId, 'reject_once'));
await thread.decide(questions[1].requestId, 'reject_once');
const { text } = await run.answer({ timeoutMs: 30_000 });
const failed = await fails((await thread.send('/fail')).answer());
const progress = [];
const content = 'x'.repeat(300_000);
await spool.files.upload(AGENT_ID, { name: 'x.txt', content }, { onProgress: (sent) => progress.push(sent) });
const old = await import('./old.cjs').catch((error) => error);
const first = await agent.send('First', { userId: 'ada', files: [{ name: 'y.txt', content: 'y' }] });
const created = spool.thread(first.threadId);
const greeting = await first.answer();
await created.setTitle('Named');
await created.archive();
await created.unarchive();
const { thread: named } = await created.get();
await created.delete();
await created.delete();
const draft = await spool.files.upload(AGENT_ID, { name: 'z.txt', content: 'z' });
await spool.files.delete(draft.id);
const gone = await fails(created.get());

const other = await agent.thread({ userId: 'ada' });
const slow = await other.send('/think 60s');
const timeout = await fails(slow.answer({ timeoutMs: 50 }));
await other.interrupt();
const stopped = await fails(slow.answer());
const resumed = await other.retry(slow.id);
await other.interrupt();
const stoppedAgain = await fails(resumed.answer());

const { messages } = await thread.messages();
const { fileId } = messages[0].parts.find(({ type }) => type === 'file');
const { url } = await spool.files.link(fileId);
const { threads } = await spool.threads.list({ userId: 'ada', runStatus: 'waiting_input' });
const missing = await fails(spool.thread('01ARZ3NDEKTSV4RRFFQ69G5FAV').get());
const { token } = await spool.browserTokens.create({ userId: 'ada', verbs: ['read'] });
Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '20.2.0' } });
const tooOld = await fails(Promise.resolve().then(() => new Spool({ baseUrl: BASE_URL, token: ACCESS_TOKEN })));
console.log(JSON.stringify({
  isSame: thread.id === again.id,
  asked: questions.map(({ toolName }) => toolName),
  text,
  late: [late.reason, late.decision],
  failed: [failed.code, failed.reason],
  file: await (await spool.files.download(fileId)).text(),
  linked: await (await fetch(url)).text(),
  waiting: threads.length,
  missing: [missing.code, missing.reason, missing.status],
  slow: [timeout.code, stopped.reason],
  resumed: [resumed.id !== slow.id, stoppedAgain.reason],
  tokenStart: token.slice(0, 9),
  progress: [progress.length > 1, progress.at(-1)],
  old: [old.message, tooOld.message],
  created: [greeting.text, named.title, gone.status],
}));
`;

const FOLLOW = `
async function read(thread) {
  const entries = [];
  let state = { messages: [] };
  for await (const entry of thread.stream({ until: 'idle' })) {
    entries.push(entry);
    state = reduceThread([entry], state);
  }
  return { entries, state };
}`;

const FOLLOW_PROGRAM = `
import { reduceThread, Spool } from '@spool/client';
${FOLLOW}
const spool = new Spool({ baseUrl: process.env.BASE_URL, token: process.env.ACCESS_TOKEN });
console.log(JSON.stringify(await read(spool.thread('THREAD_ID'))));
`;

const PAGE = `<!doctype html><title>Client</title><link rel="icon" href="data:,">
<script type="importmap">{"imports": {"@spool/client": "/client.js", "eventsource-parser": "/parser.js"}}</script>`;

const PAGE_PROGRAM = `
import { reduceThread, Spool } from '@spool/client';
${FOLLOW}
export const follow = (baseUrl, threadId) => {
  const getToken = async () => (await fetch('/token', { method: 'POST' })).json(); // Throws for a 503 without a body.
  return read(new Spool({ baseUrl, getToken }).thread(threadId));
};
`;

/** Serves the page of an application, which has another origin than the API, and creates its tokens. */
async function startSite(service: () => Caller): Promise<Server> {
  const scripts = new Map([
    ['/client.js', await readFile(join(installed.folder, 'node_modules/@spool/client/index.js'), 'utf8')],
    ['/parser.js', await readFile(join(PARSER, 'dist/index.js'), 'utf8')],
    ['/follow.mjs', PAGE_PROGRAM],
  ]);
  const server = createServer((request, response) => {
    const script = scripts.get(request.url!);
    if (script !== undefined) return void response.setHeader('content-type', 'text/javascript').end(script);
    if (request.url === '/') return void response.setHeader('content-type', 'text/html').end(PAGE);
    const rights = { userId: 'ada', verbs: ['read'] };
    send(service(), 'POST', '/browser-tokens', rights).then(
      ({ body }) => response.end(JSON.stringify(body)),
      // The pod that was asked may be the one that is killed.
      () => response.writeHead(503).end(),
    );
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  return server;
}

/** A proxy that cuts a connection in the middle of the second frame of a stream, or after the first if no other follows. */
class FrameCutter {
  cuts = 0;
  /** How often each client has asked for what follows an entry. */
  private readonly asked = new Map<string, number>();

  private constructor(private readonly server: TcpServer) {}

  static async start(targetPort: number): Promise<FrameCutter> {
    const server = createTcpServer((client) => {
      const upstream = connect(targetPort, '127.0.0.1');
      let [request, text] = ['', ''];
      client.on('data', (bytes: Buffer) => (request += bytes.toString('latin1')));
      client.pipe(upstream);
      upstream.on('data', (bytes: Buffer) => {
        text += bytes.toString('latin1');
        const frames = text.lastIndexOf('event: thread.event');
        const end = frames === -1 ? -1 : text.indexOf('\n\n', text.indexOf('event: thread.event'));
        if (end === -1) return void client.write(bytes);
        cutter.cuts++;
        const before = text.length - bytes.length;
        const cut = Math.max(0, end + 2 - before);
        client.write(bytes.subarray(0, cut));
        setTimeout(() => client.end(bytes.subarray(cut, cut + HALF_A_FRAME)), cutter.readMs(request));
        upstream.removeAllListeners('close');
        upstream.destroy();
      });
      const end = (): void => void [client.destroy(), upstream.destroy()];
      for (const socket of [client, upstream]) socket.on('close', () => socket === upstream && end()).on('error', end);
    });
    const cutter = new FrameCutter(server);
    await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
    return cutter;
  }

  /**
   * Returns how long a client gets to read the frame. Chromium drops what a page has not read when its connection breaks, so a
   * busy page that asks for the same frame again gets twice the time.
   */
  private readMs(request: string): number {
    const client = [/^last-event-id: *(\w+)/im, /^user-agent: *(.*)/im]
      .map((header) => header.exec(request)?.[1])
      .join(' ');
    const times = this.asked.get(client) ?? 0;
    this.asked.set(client, times + 1);
    return READ_MS * 2 ** times;
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  close(): Promise<void> {
    return new Promise((closed) => void this.server.close(() => closed()));
  }
}

/** Bytes of the next frame that still pass, and the time that a client gets at first. */
const HALF_A_FRAME = 40;
const READ_MS = 30;
