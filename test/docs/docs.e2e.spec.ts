import { execFile } from 'node:child_process';
import { mkdtemp, mkdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { readdirSync } from 'node:fs';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { eventually, faultProxy, spawnNode, type SpawnedNode } from '#testing';
import {
  createAcknowledged,
  getThread,
  postEvents,
  readLog,
  send,
  waitForEntry,
  type Caller,
} from '../support/client.ts';
import {
  API_DOCS,
  APPLICATION_PROGRAMS,
  blocksOf,
  CLIENT_PROGRAMS,
  type Block,
} from '../support/documented-clients.ts';
import { embeddedDataDir, expectOperatorsWalk } from '../support/newcomer.ts';

/**
 * What docs/api shows is what happens: each page's commands are typed in one shell, in their order, beside a running `npm
 * start`, and print what stands below them (`…` for what differs from time to time). `sh` is run; `js <file>`, `jsx <file>` and
 * `html <file>` are files that an `sh` block, generic-clients.e2e, browsers.e2e or react.e2e uses; `text` is what the `sh` block above it prints.
 */
const run = promisify(execFile);

const PAGES = new Map(
  readdirSync(API_DOCS)
    // clients.e2e runs the first, with generators that need a newer Node, and chat.e2e the second.
    .filter((file) => file.endsWith('.md') && !['clients.md', 'chat.md'].includes(file))
    .map((page) => [page, blocksOf(page)]),
);
const ALL = [...PAGES.values()].flat();
const PROGRAMS = ALL.filter(({ language }) => language === 'js');
const SET_UP = PAGES.get('quickstart.md')?.find(({ language }) => language === 'sh')?.code ?? '';
/** That something hangs is told in the end, and not how fast a busy machine types. */
const RUN_TIMEOUT_MS = 120_000;

/** The same but for white space and what `…` stands for. */
function prints(output: string, expected: string): boolean {
  const printed = output.replaceAll(/\s/g, '');
  const [first = '', ...rest] = expected.replaceAll(/\s/g, '').split('…');
  const last = rest.pop();
  if (last === undefined) return printed === first;
  if (!printed.startsWith(first)) return false;
  let at = first.length;
  for (const part of rest) {
    const found = printed.indexOf(part, at);
    if (found === -1) return false;
    at = found + part.length;
  }
  return printed.length - last.length >= at && printed.endsWith(last);
}

/** In front of the API: answers 503 first, then loses an answer, then sends half of one; from then on all is well. */
async function startBadLine(origin: string): Promise<{ server: Server; requests: () => number }> {
  let requests = 0;
  const server = createServer((request, response) => {
    const number = ++requests;
    void (async () => {
      if (number === 1) return void response.writeHead(503, { 'Retry-After': '1' }).end('{"error":{}}');
      const { authorization = '', 'idempotency-key': key } = request.headers;
      const headers = { authorization, 'content-type': 'application/json', 'idempotency-key': String(key) };
      const body = await text(request);
      const answer = await fetch(`${origin}${request.url}`, { method: 'POST', headers, body });
      const bytes = Buffer.from(await answer.arrayBuffer());
      if (number === 2) return void request.socket.destroy();
      response.writeHead(answer.status, { 'Content-Length': bytes.length });
      if (number > 3) return void response.end(bytes);
      response.write(bytes.subarray(0, 20), () => request.socket.destroy());
    })();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { server, requests: () => requests };
}

describe('docs/api', () => {
  let home: string;
  let standalone: SpawnedNode;
  let caller: Caller;

  beforeAll(async () => {
    home = await mkdtemp(join(tmpdir(), 'spool-docs-'));
    standalone = spawnNode('dist/apps/standalone/main.js', [], { DATA_DIR: join(home, '.data'), PORT: '0' });
    await standalone.waitForLine(/Spool is ready/, 60_000);
    const env = await readFile(join(home, '.data', 'quickstart.env'), 'utf8');
    const value = (name: string): string => new RegExp(`^${name}=(.*)$`, 'm').exec(env)?.[1] ?? '';
    caller = { baseUrl: value('BASE_URL'), token: value('ACCESS_TOKEN'), agentId: value('AGENT_ID') };
  }, 90_000);

  afterAll(async () => {
    const dataDir = embeddedDataDir(standalone.output());
    await standalone.kill('SIGTERM');
    await rm(home, { recursive: true, force: true });
    if (dataDir) await rm(dataDir, { recursive: true, force: true });
  });

  /** A directory as the reader's: beside the data of `npm start`, with every program of the pages. */
  async function openDesk(name: string): Promise<string> {
    const desk = join(home, name);
    await mkdir(desk);
    await symlink(join(home, '.data'), join(desk, '.data'));
    await Promise.all(PROGRAMS.map(({ file, code }) => writeFile(join(desk, file), code)));
    return desk;
  }

  async function runProgram(name: string, program: string, baseUrl: string): Promise<string> {
    const desk = await openDesk(name);
    await writeFile(join(desk, 'program.mjs'), program);
    const { PATH } = process.env;
    const env = { PATH, BASE_URL: baseUrl, ACCESS_TOKEN: caller.token, AGENT_ID: caller.agentId };
    const { stdout } = await run(process.execPath, ['program.mjs'], { cwd: desk, env, timeout: RUN_TIMEOUT_MS });
    return stdout;
  }

  async function expectAsWritten(page: string, blocks: readonly Block[]): Promise<void> {
    const parts = blocks.flatMap(({ language, code }, i) => (language === 'sh' ? [`echo "@@${i}@@"\n${code}`] : []));
    const script = [page === 'quickstart.md' ? '' : SET_UP, ...parts].join('\n');
    const { PATH, HOME } = process.env;
    const desk = await openDesk(page);
    if (page === 'client.md') {
      await mkdir(join(desk, 'node_modules/@spool'), { recursive: true });
      await symlink(resolve('dist/client'), join(desk, 'node_modules/@spool/client'));
    }
    const options = { cwd: desk, env: { PATH, HOME }, timeout: RUN_TIMEOUT_MS };
    const { stdout } = await run('/bin/sh', ['-euc', script], options).catch((error: Error & { stdout: string }) => {
      throw new Error(`${page}: ${error.message}\n${error.stdout}`);
    });
    const outputs = new Map([...stdout.matchAll(/@@(\d+)@@([^]*?)(?=@@\d+@@|$)/g)].map(([, i, output]) => [i, output]));
    expect(outputs.size).toBe(parts.length);
    for (const [i, { language, code }] of blocks.entries()) {
      if (language !== 'text') continue;
      const output = outputs.get(String(i - 1)) ?? '';
      expect({ page, output: prints(output, code) ? code : output }).toEqual({ page, output: code });
    }
  }

  test('has no block that is not run or compared', () => {
    expect(SET_UP).toContain('quickstart.env');
    for (const [page, blocks] of PAGES) {
      const wrong = blocks.filter(({ language, file }, i) => {
        if (language === 'text') return blocks[i - 1]?.language !== 'sh';
        return language !== 'sh' && !({ js: /\.mjs$/, jsx: /\.jsx$/, html: /\.html$/ }[language]?.test(file) ?? false);
      });
      expect({ page, wrong }).toEqual({ page, wrong: [] });
    }
    const uses = ALL.map(({ code }) => code).join('');
    const unused = PROGRAMS.filter(({ file }) => !uses.includes(`node ${file}`) && !uses.includes(`from './${file}'`));
    expect(unused.map(({ file }) => file)).toEqual([...APPLICATION_PROGRAMS, ...Object.values(CLIENT_PROGRAMS).flat()]);
  });

  const withCommands = [...PAGES].filter(([, blocks]) => blocks.some(({ language }) => language === 'sh'));

  test(
    'does what it says',
    async () => {
      await Promise.all(withCommands.map(([page, blocks]) => expectAsWritten(page, blocks)));
    },
    RUN_TIMEOUT_MS,
  );

  test(
    'README.md, for operators: does what it says',
    async () => {
      await expectOperatorsWalk(await openDesk('operators'));
    },
    RUN_TIMEOUT_MS,
  );

  async function postOnABadLine(): Promise<void> {
    const target = new URL(caller.baseUrl);
    const { server, requests } = await startBadLine(target.origin);
    const { port } = server.address() as AddressInfo;
    const program = `import { post } from './post.mjs';
      const { AGENT_ID } = process.env;
      const { thread } = await post('/agents/' + AGENT_ID + '/threads', { userId: 'bad-line' }, 'bad-line-1');
      console.log(thread.id);`;
    try {
      const printed = await runProgram('post', program, `http://127.0.0.1:${port}${target.pathname}`);
      type Page = { threads: { id: string }[] };
      const listed = await send<Page>(caller, 'GET', `/agents/${caller.agentId}/threads?userId=bad-line`);
      expect(listed.body.threads.map(({ id }) => id)).toEqual([printed.trim()]);
      expect(requests()).toBe(4);
    } finally {
      server.close();
    }
  }

  async function readOnABadLine(): Promise<void> {
    const target = new URL(caller.baseUrl);
    const proxy = await faultProxy(Number(target.port));
    // It waits for a person until both connections are broken, however slow the reader is to come back.
    const { threadId, runId } = await createAcknowledged(caller, '/confirm /pieces 100');
    const program = `import { readEvents } from './read.mjs';
      for await (const entry of readEvents('${threadId}')) console.log(JSON.stringify(entry));`;
    try {
      const printed = runProgram('read', program, proxy.through(caller.baseUrl).replace(/\/$/, ''));
      printed.catch(() => undefined); // told where it is awaited
      for (const what of ['reads', 'reads again']) {
        // A reset between the connection and the request makes fetch wait for ever, so until the program's own 45 s are over.
        const reads = eventually(() => proxy.answeredCount() === 1, { what: `it ${what}`, timeoutMs: 15_000 });
        // Else the wait is in vain, and only `printed` knows why.
        const early = printed.then((text) => Promise.reject(new Error(`it ended early: ${text}`)));
        await Promise.race([reads, early]);
        proxy.reset();
        await eventually(() => proxy.connectionCount() === 0, { what: 'its connection is gone' });
      }
      const { content: requestId } = await waitForEntry(caller, threadId, 'tool.confirmation.required');
      await postEvents(caller, threadId, { type: 'permission_decision', requestId, decision: 'allow_once' });
      const entries = (await printed)
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as unknown);
      expect(entries).toEqual(await readLog(caller, threadId));
      expect((await getThread(caller, threadId)).body.run).toMatchObject({ id: runId, status: 'completed' });
    } finally {
      await proxy.close();
    }
  }

  test(
    'has programs that survive a 503, a lost answer, half an answer, and streams that break',
    async () => {
      await Promise.all([postOnABadLine(), readOnABadLine()]);
    },
    RUN_TIMEOUT_MS,
  );
});
