import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { eventually, faultProxy, type FaultProxy } from '#testing';
import { Balancer } from '../support/balancer.ts';
import { CLIENT_TYPES, generateClientTypes } from '../support/client-types.ts';
import { postEvents, readLog, send, type Caller, type ThreadAnswer } from '../support/client.ts';
import { installOpenApiTools, type OpenApiTools } from '../support/openapi-tools.ts';
import { startSystem, type ApiProcess, type System } from '../support/system.ts';

/**
 * docs/api/clients.md: generates a client with each tool as the page says, compiles the page's programs strictly, and runs
 * them. Here are also the linters that read the same documents.
 */
const DOCUMENTS = { api: resolve('docs/api/openapi.json'), admin: resolve('docs/admin/openapi.json') };
const PROGRAMS = { 'openapi-fetch': 'with-openapi-fetch', 'hey-api': 'with-hey-api', orval: 'with-orval' };
const NAMES = Object.keys(PROGRAMS) as (keyof typeof PROGRAMS)[];
const SET_UP_MS = 240_000;

interface Block {
  language: string;
  file: string;
  code: string;
}

/** Uses each generator's types of the admin document. */
const ADMIN_PROGRAM = `import type { paths } from './spool-types.js';
import type { ListThreadsResponse } from './spool-hey-api/index.js';
import type { listThreadsResponseSuccess } from './spool-orval.js';
type Answer = paths['/threads']['get']['responses'][200]['content']['application/json'];
type Status = 'IDLE' | 'RUNNING' | 'RESCHEDULING' | 'TERMINATED';
export const statusOf: {
  types: (answer: Answer) => Status | undefined;
  heyApi: (answer: ListThreadsResponse) => Status | undefined;
  orval: (answer: listThreadsResponseSuccess) => Status | undefined;
} = {
  types: ({ threads }) => threads[0]?.status,
  heyApi: ({ threads }) => threads[0]?.status,
  orval: ({ data }) => data.threads[0]?.status,
};
`;

let tools: OpenApiTools;
let desk: string;

beforeAll(async () => {
  tools = installOpenApiTools();
  desk = await mkdtemp(join(tmpdir(), 'spool-clients-'));
  await symlink(tools.modules, join(desk, 'node_modules'));
  await writeFile(join(desk, 'package.json'), '{"type":"module"}');
  const page = await readFile('docs/api/clients.md', 'utf8');
  const blocks = [...page.matchAll(/^```(\S*) ?(.*)\n([^]*?)^```$/gm)].map(
    ([, language = '', file = '', code = '']): Block => ({ language, file, code }),
  );
  await Promise.all([
    generate(desk, blocks, DOCUMENTS.api),
    generate(
      join(desk, 'admin'),
      blocks.filter(({ file }) => !file.startsWith('with-')),
      DOCUMENTS.admin,
    ),
  ]);
  await writeFile(join(desk, 'admin', 'admin.ts'), ADMIN_PROGRAM);
}, SET_UP_MS);

afterEach(() => Program.endAll());

afterAll(() => rm(desk, { recursive: true, force: true }));

/** Writes the page's files and runs its commands, but takes the checked-in document. */
async function generate(folder: string, blocks: readonly Block[], document: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  await cp(document, join(folder, 'spool.json'));
  await Promise.all(blocks.flatMap(({ file, code }) => (file === '' ? [] : [writeFile(join(folder, file), code)])));
  const commands = blocks.filter(({ language, code }) => language === 'sh' && !code.startsWith('curl'));
  expect(commands).toHaveLength(NAMES.length);
  await Promise.all(commands.map(({ code }) => tools.run(folder, '/bin/sh', ['-euc', code])));
}

/** Compiles with the page's settings and `options`. */
async function compile(name: string, options: object, include: string[]): Promise<void> {
  const config = join(desk, `tsconfig.${name}.json`);
  await writeFile(config, JSON.stringify({ extends: './tsconfig.json', compilerOptions: options, include }));
  await tools.run(desk, process.execPath, [resolve('node_modules/typescript/bin/tsc'), '-p', config]);
}

test(
  'every generated client compiles under tsc --strict',
  async () => {
    const exact = { exactOptionalPropertyTypes: true, noEmit: true };
    await Promise.all([
      compile('strict', { noEmit: true }, ['*.ts', 'admin/admin.ts']),
      compile('exact', exact, ['with-openapi-fetch.ts', 'with-orval.ts']),
    ]);
  },
  SET_UP_MS,
);

test('the types of @spool/client are those of the document: npm run client-types writes them', async () => {
  expect(await readFile(CLIENT_TYPES, 'utf8')).toBe(await generateClientTypes());
});

test.each(Object.entries(DOCUMENTS))(
  'the linters report only the missing licence and contact in the %s document',
  async (_, path) => {
    await writeFile(join(desk, 'ruleset.json'), '{"extends":["spectral:oas"]}');
    const [redocly, spectral] = await Promise.all([
      tools.run(desk, 'redocly', ['lint', '--extends=recommended', '--format=json', path]),
      tools.run(desk, 'spectral', ['lint', '--ruleset=ruleset.json', '--format=json', '--quiet', path]),
    ]);
    const { problems } = JSON.parse(redocly) as { problems: { ruleId: string }[] };
    expect(problems).toEqual([expect.objectContaining({ ruleId: 'info-license' })]);
    expect(JSON.parse(spectral)).toEqual([expect.objectContaining({ code: 'info-contact' })]);
  },
  SET_UP_MS,
);

describe('the programs', () => {
  let system: System;
  let pod: ApiProcess;

  beforeAll(async () => {
    system = await startSystem();
    const output = compile('output', {}, ['with-*.ts']);
    [pod] = await Promise.all([system.startApi(), system.startWorker(), output]);
  }, SET_UP_MS);

  afterAll(() => system?.stop());

  test(
    'create, stream, upload and download',
    async () => {
      const runs = NAMES.map((name) => new Program(name, pod.caller));
      for (const run of runs) {
        await expectWhole(pod.caller, run, 'You said: Where is my order?');
        expect(await threadsOf(pod.caller, run.name)).toHaveLength(1);
      }
    },
    SET_UP_MS,
  );

  test(
    'end if the connection breaks after the last entry',
    async () => {
      const line = await faultProxy(Number(new URL(pod.caller.baseUrl).port));
      const broken = NAMES.map(() => line.endBefore('event: thread.idle'));
      const caller = { ...pod.caller, baseUrl: line.through(pod.caller.baseUrl) };
      try {
        for (const run of NAMES.map((name) => new Program(name, caller, 'Break it.')))
          await expectWhole(pod.caller, run, 'You said: Break it.');
        await Promise.all(broken);
      } finally {
        await line.close();
      }
    },
    SET_UP_MS,
  );

  test(
    'lose and repeat nothing if an answer is lost and the pod that serves their streams is killed',
    async () => {
      const balancer = await Balancer.start();
      const line = await faultProxy(Number(new URL(balancer.through(pod.caller).baseUrl).port));
      try {
        await runThroughFaults(balancer, line);
      } finally {
        await line.close();
        await balancer.close();
      }
    },
    SET_UP_MS,
  );

  async function runThroughFaults(balancer: Balancer, line: FaultProxy): Promise<void> {
    await balancer.add(pod.caller);
    const lost = NAMES.map((name) => line.dropNextAnswer((request) => request.includes(`"userId":"${name}"`)));
    const caller = { ...pod.caller, baseUrl: line.through(balancer.through(pod.caller).baseUrl) };
    const runs = NAMES.map((name) => new Program(name, caller, 'Send it. /confirm'));
    await Promise.all(lost);
    // Each Run waits for a person, with its stream open on the only pod.
    const asks = ({ output }: Program): boolean => output.includes('tool.confirmation.required');
    await eventually(() => runs.every((run) => run.hasEnded || asks(run)), {
      what: 'each program shows the confirmation',
      timeoutMs: SET_UP_MS / 2,
    });
    expect(runs.filter((run) => !asks(run)).map(({ output }) => output)).toEqual([]);
    const other = await system.startApi();
    await balancer.add(other.caller);
    await pod.process.kill('SIGKILL');
    for (const run of runs) {
      const threads = await threadsOf(other.caller, run.name);
      expect(threads).toHaveLength(3);
      const threadId = threads[0]!.id;
      const asked = (await readLog(other.caller, threadId)).find(({ type }) => type === 'tool.confirmation.required');
      const decision = { type: 'permission_decision', requestId: asked?.content, decision: 'allow_once' };
      expect(await postEvents(other.caller, threadId, decision)).toMatchObject({ status: 200 });
    }
    for (const run of runs) await expectWhole(other.caller, run, 'You said: Send it.');
  }
});

/** A running program of the page. */
class Program {
  private static readonly running = new Set<ChildProcess>();

  output = '';
  hasEnded = false;
  private readonly ended: Promise<number | null>;

  constructor(
    readonly name: keyof typeof PROGRAMS,
    { baseUrl, token, agentId }: Caller,
    ...args: string[]
  ) {
    const env = { BASE_URL: baseUrl, ACCESS_TOKEN: token, AGENT_ID: agentId };
    const child = spawn(process.execPath, [`out/${PROGRAMS[name]}.js`, ...args], { cwd: desk, env });
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => (this.output += text));
    Program.running.add(child);
    this.ended = once(child, 'close').then(([code]: (number | null)[]) => {
      Program.running.delete(child);
      this.hasEnded = true;
      return code ?? null;
    });
  }

  /** Kills the programs that a failed test left: their streams retry for ever. */
  static endAll(): void {
    Program.running.forEach((child) => child.kill('SIGKILL'));
  }

  async lines(): Promise<string[]> {
    expect([await this.ended, this.output]).toEqual([0, this.output]);
    return this.output.trim().split('\n');
  }
}

/** Expects that the program printed each entry of the log once and in order, the answer and the file. */
async function expectWhole(caller: Caller, program: Program, answer: string): Promise<void> {
  const lines = await program.lines();
  const printed = JSON.parse(lines.at(-1)!) as { threadId: string; answer: string; file: string };
  const log = await readLog(caller, printed.threadId);
  const shown = lines.filter((line) => /^[0-9A-Z]{26} /.test(line));
  expect(shown).toEqual(log.map(({ id, type }) => `${id} ${type}`));
  const { body } = await send<ThreadAnswer>(caller, 'GET', `/threads/${printed.threadId}`);
  expect(printed).toMatchObject({ answer: body.run?.finalOutput?.text, file: 'Order 1042' });
  expect(printed.answer).toContain(answer);
}

async function threadsOf(caller: Caller, userId: string): Promise<{ id: string }[]> {
  const path = `/agents/${caller.agentId}/threads?userId=${userId}`;
  return (await send<{ threads: { id: string }[] }>(caller, 'GET', path)).body.threads;
}
