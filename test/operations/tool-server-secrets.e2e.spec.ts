import { spawn, type ChildProcess, type StdioOptions } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { chmod, chown, mkdir, mkdtemp, rm, unlink, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { AgentManifestInput } from '#agents';
import { findFreePort } from '#platform';
import { eventually } from '#testing';
import { createAcknowledged, type Caller } from '../support/client.ts';
import { endOf, type EndedRun } from '../support/model-system.ts';
import { addAgent } from '../support/more-agents.ts';
import { ScriptedProvider } from '../support/provider/scripted-provider.ts';
import { startSystem, type System } from '../support/system.ts';

const ROOT = join(import.meta.dirname, '../..');
/** A user that owns nothing. */
const NOBODY = 65_534;
const PLANTED = Array.from(
  { length: 13 },
  (_, i) => `planted-${String(i + 1).padStart(2, '0')}-${randomBytes(4).toString('hex')}`,
);
const [IN_DATABASE_URL, IN_QUEUE_URL, PROVIDER_KEY, AWS_KEY, ARGUMENT, IN_DATA, IN_HOME, IN_FILE] = PLANTED as Eight;
const [OPEN_FILE, OTHERS, IN_SOCKET, IN_ABSTRACT, IN_PORT] = PLANTED.slice(8) as Eight;
type Eight = [string, string, string, string, string, string, string, string];

/** How many descriptors of the worker, from 3 on, are a file with a secret. Bubblewrap gets others on 3 and 4. */
const OPEN_FILES = 6;

const AS_NOBODY = `mount --bind "$0" /mnt && exec setpriv --reuid ${NOBODY} --regid ${NOBODY} --clear-groups "$@"`;
const NO_NAMESPACES =
  'echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv --inh-caps=-all --ambient-caps=-all "$@"';

interface Snooped {
  found: [secret: string, where: string][];
  /** Files of /proc that change the machine, and that it could open for writing. */
  writable: string[];
  abstract: string;
  port: string;
  metadata: string;
  uid: number;
  given: string;
}

const isRoot = process.getuid?.() === 0;

/** A worker as it is deployed, with a secret in each place that another process may be able to read. */
describe('a tool server that reads all it can', () => {
  let provider: ScriptedProvider;
  let system: System;
  let api: Caller;
  let folder: string;
  /** Not below the folder that programs see, because it holds a file with a secret. */
  let home: string;
  let port: number;
  const abstract = `spool-${randomBytes(8).toString('hex')}`;
  const listening: Server[] = [];
  const workers: ChildProcess[] = [];
  let workerOutput = (): string => '';

  const say = async (to: { path: string } | { host: string; port: number }, secret: string): Promise<void> => {
    const server = createServer((socket) => socket.on('error', () => undefined).end(secret));
    listening.push(server.listen(to));
    await once(server, 'listening');
  };

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'spool-snooped-'));
    await chmod(folder, 0o755);
    home = await mkdtemp(join(tmpdir(), 'spool-snooped-home-'));
    await Promise.all(['data', 'manifest'].map((name) => mkdir(join(folder, name))));
    await writeFile(join(folder, 'data/quickstart.env'), IN_DATA);
    await writeFile(join(home, 'credentials'), IN_HOME);
    await writeFile(join(folder, 'manifest/secret'), IN_FILE);
    port = await findFreePort();
    await say({ path: join(folder, 'data/socket') }, IN_SOCKET);
    await say({ path: `\0${abstract}` }, IN_ABSTRACT);
    await say({ host: '127.0.0.1', port }, IN_PORT);
    const inFolder = ['', 'data', 'data/quickstart.env', 'data/socket', 'manifest', 'manifest/secret'];
    // So that no permission hides them.
    for (const path of [...inFolder.map((name) => join(folder, name)), home, join(home, 'credentials')])
      if (isRoot) await chown(path, NOBODY, NOBODY);
    provider = await ScriptedProvider.start({ apiKey: PROVIDER_KEY, scripts: SCRIPTS });
    system = await startSystem({ env: { ...keys, ALLOWED_PRIVATE_ADDRESSES: '127.0.0.1' } });
    api = (await system.startApi({ MANIFEST_FILES: join(folder, 'manifest'), TOOL_SERVER_NETWORK: 'on' })).caller;
  }, 90_000);

  afterEach(async () => {
    for (const worker of workers.splice(0)) {
      worker.kill('SIGKILL');
      await eventually(() => worker.exitCode !== null || worker.signalCode !== null, { what: 'the worker has ended' });
    }
  });
  afterAll(async () => {
    for (const server of listening) server.close();
    await system?.stop();
    await provider?.close();
    for (const path of [folder, home]) await rm(path, { recursive: true, force: true });
  });

  const keys = { ANTHROPIC_API_KEY: PROVIDER_KEY, OTHERS_SECRET: OTHERS, GIVEN_SECRET: 'given-and-so-known' };

  /** Starts a worker by a command that ends with the program to run; returns what it writes. */
  async function startWorker(
    launch: string[],
    root: string,
    more: Record<string, string> = {},
    expected: 'ready' | 'ended' = 'ready',
  ): Promise<() => string> {
    const url = new URL(system.databaseUrl);
    const withSecret = (secret: string): string => {
      const withIt = new URL(url);
      withIt.searchParams.set('application_name', secret);
      return withIt.href;
    };
    // The visible folder holds the data directory and the secrets of manifests.
    const env = {
      ...system.env,
      ...keys,
      PATH: process.env['PATH'],
      HOME: home,
      DATABASE_URL: withSecret(IN_DATABASE_URL),
      QUEUE_URL: withSecret(IN_QUEUE_URL),
      AWS_SECRET_ACCESS_KEY: AWS_KEY,
      AWS_SHARED_CREDENTIALS_FILE: join(home, 'credentials'),
      MANIFEST_FILES: join(folder, 'manifest'),
      DATA_DIR: join(folder, 'data'),
      TOOL_SERVER_FOLDERS: `${root},${folder}`,
      ...more,
    };
    const open = join(folder, 'open');
    await writeFile(open, OPEN_FILE);
    const fd = openSync(open, 'r');
    await unlink(open);
    const [file = '', ...args] = [...launch, process.execPath, `${root}/dist/apps/worker/main.js`, ARGUMENT];
    const stdio = ['ignore', 'pipe', 'pipe', ...Array<number>(OPEN_FILES).fill(fd)] satisfies StdioOptions;
    const worker = spawn(file, args, { cwd: ROOT, env, stdio });
    closeSync(fd);
    workers.push(worker);
    let output = '';
    workerOutput = () => output;
    for (const stream of [worker.stdout, worker.stderr]) stream?.on('data', (piece) => (output += String(piece)));
    await eventually(() => output.includes('worker ready') || worker.exitCode !== null, {
      what: 'the worker is ready',
      timeoutMs: 45_000,
    });
    expect(output.includes('worker ready') ? 'ready' : 'ended').toBe(expected);
    return () => output;
  }

  async function run(root: string, network = false): Promise<EndedRun> {
    const script = `${root}/libs/agents/mcp/snooping-server.testing.mjs`;
    const env = { SNOOP: `${folder},${home}`, GIVEN: { env: 'GIVEN_SECRET' } };
    const agentId = await addAgent(system, {
      ...MANIFEST,
      model: { provider: 'anthropic', name: 'm', baseUrl: provider.anthropicUrl, apiKey: { env: 'ANTHROPIC_API_KEY' } },
      toolServers: [
        { name: 'snoop', command: process.execPath, args: [script, String(port), abstract], env, network },
        // Another server of the same agent, with a secret of its own.
        {
          command: process.execPath,
          args: [`${root}/node_modules/@modelcontextprotocol/server-everything/dist/index.js`],
          name: 'other',
          env: { ITS_KEY: { env: 'OTHERS_SECRET' }, ITS_FILE: { file: join(folder, 'manifest/secret') } },
        },
      ],
    });
    const caller = { ...api, agentId };
    const { threadId } = await createAcknowledged(caller, 'script: snoops');
    return endOf(caller, threadId);
  }

  async function snoop(root: string, network = false): Promise<Snooped> {
    const { status, error, finalOutput } = await run(root, network);
    const log = status === 'completed' ? '' : workerOutput();
    expect({ status, error, log }).toEqual({ status: 'completed', error: null, log: '' });
    return JSON.parse(finalOutput!.text) as Snooped;
  }

  const secretsOf = ({ found }: Snooped): string[] => [...new Set(found.map(([secret]) => secret))].sort();

  it('finds all of them without a sandbox, so the search works', async () => {
    await startWorker([], ROOT, { TOOL_SERVER_ISOLATION: 'none' });
    expect(secretsOf(await snoop(ROOT))).toEqual(PLANTED);
  }, 120_000);

  it('finds no file and no variable with the network either, only what listens', async () => {
    await startWorker([], ROOT, { TOOL_SERVER_NETWORK: 'on' });
    const snooped = await snoop(ROOT, true);
    expect(secretsOf(snooped)).toEqual([IN_ABSTRACT, IN_PORT].sort());
    expect(snooped).toMatchObject({ writable: [], abstract: 'closed', port: 'closed', given: '***' });
  }, 120_000);

  it('keeps a worker from starting whose programs would see a file with a secret', async () => {
    const output = await startWorker([], ROOT, { TOOL_SERVER_FOLDERS: `${ROOT},${home}` }, 'ended');
    expect(output()).toContain(`TOOL_SERVER_FOLDERS: ${home} holds the secret ${home}/credentials; move it`);
  }, 120_000);

  const asNobody = ['unshare', '--mount', 'sh', '-c', AS_NOBODY, ROOT];
  it.each<[string, string[], string]>(
    isRoot
      ? [
          ['as root', [], ROOT],
          // An ordinary user may not be able to read the checkout.
          ['as an ordinary user', asNobody, '/mnt'],
        ]
      : [['as an ordinary user', [], ROOT]],
  )(
    'finds none of thirteen secrets %s',
    async (_who, launch, root) => {
      await startWorker(launch, root);
      const snooped = await snoop(root);
      expect(snooped.found).toEqual([]);
      expect(snooped.writable).toEqual([]);
      // The server could search, and has its own secret.
      expect(snooped.given).toBe('***');
      expect(snooped).toMatchObject({ abstract: 'ECONNREFUSED', port: 'ECONNREFUSED', metadata: 'ENETUNREACH' });
      // Never root.
      expect(snooped.uid).toBe(isRoot ? NOBODY : process.getuid?.());
    },
    120_000,
  );

  it('is not started where there are no user namespaces', async () => {
    const [before, root] = isRoot ? [asNobody, '/mnt'] : [[], ROOT];
    // The user keeps its number: root of the namespace could not become nobody, and so would not come that far.
    const unshare = ['unshare', '--user', '--map-current-user', '--keep-caps', 'sh', '-c', NO_NAMESPACES, root];
    const output = await startWorker([...before, ...unshare], root);
    const { status, error } = await run(root);
    expect([status, error?.code, output()]).toEqual(['failed', 'tool_server_misconfigured', expect.any(String)]);
    expect(output()).toContain('Tool servers need bubblewrap 0.8 or newer');
    for (const secret of PLANTED) expect(output()).not.toContain(secret);
  }, 120_000);
});

const MANIFEST: AgentManifestInput = {
  name: 'snooping',
  harness: { name: 'model' },
  tools: [{ pattern: '*', policy: 'allow' }],
  limits: { maxLosses: 1 },
};

const SCRIPTS = {
  snoops: { steps: [{ toolCalls: [{ name: 'snoop__snoop', input: {} }] }, { text: ['{{toolResults}}'] }] },
};
