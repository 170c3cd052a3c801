import { spawn, type ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { AccessStore } from '#access';
import { createAgent, publishAgentVersion, type AgentManifestInput } from '#agents';
import {
  cpuOfFamily,
  describeWithRedis,
  loseBlobs,
  memoryOf,
  peakMemory,
  redisUrl,
  reportFigure,
  reportLatency,
  reportTable,
  trackRunning,
} from '#testing';
import { claimHistory } from '../support/claim-history.ts';
import { send, type Caller, type ThreadAnswer } from '../support/client.ts';
import { ATTACKS, type HostileAgent, type Target } from '../support/hostile/attacks.ts';
import type { Listening, Order, Report } from '../support/hostile/attacker.ts';
import { freshSeed, seededRandom } from '../support/random.ts';
import type { StandardLoad } from '../support/standard-load.ts';
import { startStandardSystem, type StandardSystem } from '../support/standard-system.ts';
import { memoryOfEnvironment, POOL_MEMORY, UNTOUCHED_MEMORY } from '../support/system.ts';
import { percentile, toldTimes } from '../support/times.ts';

const MEBIBYTE = 1024 * 1024;
/** Of a process, without its children. */
const MEMORY = {
  api: memoryOfEnvironment('api') ?? 256 * MEBIBYTE,
  worker: memoryOfEnvironment('worker') ?? 512 * MEBIBYTE,
};
/** Less than the limit of the worker, which tool servers inherit where there is no cgroup. Three run in parallel. */
const TOOL_SERVER_MEMORY = 256 * MEBIBYTE;
const SLOTS_A_WORKER = 16;
/** Of the fleet, at most, for one organization. */
const SLOTS_PERCENT = 90;
/** Of 32. */
const CAP = 28;
/** The tenant's own limit of its long Runs. Its other Runs have what the cap leaves, so all its attacks go on at once. */
const LONG_RUNS_AT_ONCE = CAP - 3;
const TOKENS_AN_ATTACK = 3;
/** Of the neighbour. Two use a third of the machine's two cores: the test is about limits, not about a full machine. */
const THREADS = 2;
/** Until code is compiled and connections are open, alone and beside the attack. First requests take longer. */
const WARM_UP_MS = 9_000;
const ALONE_MS = 15_000;
const ATTACK_MS = Number(process.env['SPOOL_ATTACK_MS'] ?? 60_000);
const AFTER_MS = 8_000;
const MAX_GAP_MS = 10_000;
const MORE_DELAY_MS = 2_000;
/** Added to twice the p99 of the requests without attacks. Milliseconds. */
const MORE_P99_MS = 50;
const ROOT = join(import.meta.dirname, '../..');
const ATTACKER = join(ROOT, 'dist/test/support/hostile/attacker.js');
const SNOOPING = join(ROOT, 'libs/agents/mcp/snooping-server.testing.mjs');
/** In a variable that manifests may name, in one that they may not, and among the files of the service. */
const PLANTED = ['01', '02', '03'].map((number) => `planted-${number}-${randomBytes(4).toString('hex')}`);
const [MODEL_KEY = '', OTHERS_SECRET = '', IN_FILES = ''] = PLANTED;

/** What the neighbour saw: the times of its requests, and of its Runs from creation to end. Milliseconds. */
interface Seen {
  requests: number[];
  runs: number[];
}

describeWithRedis('a hostile tenant beside the standard load of another', () => {
  let system: StandardSystem;
  let attacker: ChildProcess;
  let attackerEnded: Promise<unknown>;
  let folder: string;
  let target: Target;

  async function start(): Promise<void> {
    folder = await mkdtemp(join(tmpdir(), 'spool-hostile-'));
    // Tool servers of a worker that is root run as nobody.
    await chmod(folder, 0o755);
    const blobs = join(folder, 'blobs');
    // Only while nothing else wants a core: the attack is on limits, not on the cores of the machine.
    attacker = spawn('chrt', ['--idle', '0', process.execPath, ATTACKER, MODEL_KEY], {
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    });
    const untrack = trackRunning({ what: 'the attacker', end: () => void attacker.kill('SIGKILL') });
    attackerEnded = once(attacker, 'exit').finally(untrack);
    const listening = await nextMessage<Listening>(attacker);
    const env = {
      ...{ BLOB_URL: pathToFileURL(blobs).href, WORKER_SLOTS: String(SLOTS_A_WORKER), MODEL_KEY, OTHERS_SECRET },
      ...{ SLOTS_PERCENT_PER_ORGANIZATION: String(SLOTS_PERCENT), MANIFEST_VARIABLES: 'MODEL_KEY' },
      // The defaults: what limits a tenant is part of what protects the others.
      ...{ RATE_LIMIT_PER_MINUTE: '', STREAMS_PER_TOKEN: '', STREAMS_PER_THREAD: '', STREAMS_PER_PROCESS: '' },
      ALLOWED_PRIVATE_ADDRESSES: '127.0.0.1',
      ...{ TOOL_SERVER_FOLDERS: `${ROOT},${folder}`, TOOL_SERVER_MEMORY_BYTES: String(TOOL_SERVER_MEMORY) },
    };
    const memoryLimits = {
      api: { bytes: MEMORY.api, untouched: UNTOUCHED_MEMORY, children: POOL_MEMORY },
      worker: { bytes: MEMORY.worker, untouched: UNTOUCHED_MEMORY, children: POOL_MEMORY + 3 * TOOL_SERVER_MEMORY },
    };
    system = await startStandardSystem({ queueUrl: redisUrl().url, env, memoryLimits });
    // One token stands for many callers of the neighbour.
    await system.database.pool.query("update tokens set requests_per_minute = 1000000000 where name = 'e2e'");
    target = await prepareTarget(system, listening, blobs);
  }

  async function stop(): Promise<void> {
    attacker.kill('SIGKILL');
    await attackerEnded;
    await system?.stop();
    await rm(folder, { recursive: true });
  }

  beforeAll(start, 120_000);
  afterAll(stop);

  /** Keeps the neighbour's load going for so long. */
  async function measure(ms: number, name: string): Promise<Seen> {
    const until = performance.now() + ms;
    const random = seededRandom(freshSeed(), name);
    const load = system.startLoad(random, { threads: THREADS, messages: 1, keepOn: () => performance.now() < until });
    await whileAllLive(load.finished(ms + 60_000));
    const seen = { requests: requestTimes(load), runs: await runTimes(load) };
    await load.holds();
    return seen;
  }

  async function measureBeside(ms: number, name: string): Promise<{ seen: Seen; report: Report }> {
    const reported = nextMessage<Report>(attacker);
    attacker.send({ target, forMs: ms } satisfies Order);
    const seen = await measure(ms, name);
    return { seen, report: await reported };
  }

  /** Rejects with what a process has said when it ends. */
  async function whileAllLive(work: Promise<void>): Promise<void> {
    const deaths = processes().map(async (process) => {
      const { code, signal } = await process.exited;
      throw new Error(`a process ended with ${signal ?? code}: ${process.output().slice(-3_000)}`);
    });
    await Promise.race([work, ...deaths]);
  }

  const requestTimes = ({ client }: StandardLoad): number[] =>
    client.requests.map(({ sentAt, answeredAt }) => answeredAt - sentAt);

  async function runTimes({ said }: StandardLoad): Promise<number[]> {
    const { rows } = await system.database.pool.query<{ ms: number }>(
      `select extract(epoch from completed_at - created_at)::float8 * 1000 as ms from run_summaries where run_id = any ($1)`,
      [said.map(({ runId }) => runId)],
    );
    return rows.map(({ ms }) => ms);
  }

  /** Milliseconds that each process and its children have used, and this one, which loads the service for the neighbour. */
  function cpuNow(): number[] {
    const { user, system: ofKernel } = process.cpuUsage();
    return [...processes().map(({ pid }) => cpuOfFamily(pid)), (user + ofKernel) / 1_000];
  }

  const processes = () => [...system.apis.map(({ process }) => process), ...system.workers];
  const memory = (): number[] => processes().map(({ pid }) => memoryOf(pid, 'VmRSS'));

  test(
    `for ${ATTACK_MS / 1_000} s neither stops nor ends anything of the other`,
    async () => {
      await measure(WARM_UP_MS, 'warming up');
      const alone = await measure(ALONE_MS, 'alone');
      const before = memory();
      await measureBeside(WARM_UP_MS, 'warming up beside the hostile tenant');
      const scansBefore = await credentialScans(system);
      const cpuBefore = cpuNow();
      const { seen: beside, report } = await measureBeside(ATTACK_MS, 'beside the hostile tenant');
      const cpu = cpuNow().map((ms, i) => ms - cpuBefore[i]!);
      const [soonAfter, most] = [memory(), processes().map(peakMemory)];
      const after = await measure(AFTER_MS, 'after the attack');
      const later = memory();
      // PostgreSQL counts a scan at the latest some seconds after it.
      const scans = (await credentialScans(system)) - scansBefore;
      const { most: slots } = await claimHistory(system.database.pool, target.organizationId);
      const said = await saidToTenant(system, target);
      const ended = ATTACKS.flatMap(({ name, ending }) =>
        ending === undefined ? [] : [{ name, count: countEndings(said, target.agents[ending.agent], ending.text) }],
      );
      tell(report, ended, cpu, { alone, beside, after }, [before, most, soonAfter, later]);
      reportLine(
        `${guesses(report)} random credentials, ${scans} scans of tokens and sessions; ${slots} slots held at once`,
      );

      const lost = await requeued(system);
      expect(lost).toEqual([]);
      for (const [i, { name, answers }] of report.attacks.entries()) {
        const { tried, also } = ATTACKS[i]!;
        // Beyond its requests a minute a token is refused. Connections end with the attack.
        const allowed = [...tried, ...also, 429].map(String);
        const others = Object.keys(answers).filter((outcome) => !allowed.includes(outcome) && !/none$/.test(outcome));
        const missing = tried.filter((outcome) => answers[outcome] === undefined);
        expect({ name, others, missing }).toEqual({ name, others: [], missing: [] });
      }
      const untold = ended.filter(({ count }) => count === 0);
      expect(untold).toEqual([]);
      // Two for each look-up, and some for valid tokens. Before, each random credential was looked up.
      expect(scans).toBeLessThan(2 * guesses(report, '401') + 600);
      // The tenant wants more slots than the cap, and has all that it allows.
      expect(slots).toBe(CAP);
      for (const secret of PLANTED) expect(JSON.stringify(said)).not.toContain(secret);
      most.forEach((bytes, i) => expect(bytes).toBeLessThan(i < system.apis.length ? MEMORY.api : MEMORY.worker));
      later.forEach((bytes, i) => expect(bytes).toBeLessThan(soonAfter[i]! * 1.05 + 8 * MEBIBYTE));
      // Beside other work on the machine the attacker comes late.
      for (const { name, longestGapMs } of report.attacks)
        reportLatency(MAX_GAP_MS, longestGapMs, `${name}: tried after`);
      const bound = 2 * percentile(alone.requests, 0.99) + MORE_P99_MS;
      reportLatency(bound, beside.requests, 'p99 of the neighbour’s requests:', 0.99);
      reportLatency(Math.max(...alone.runs) + MORE_DELAY_MS, Math.max(...beside.runs), 'a Run of the neighbour took');
    },
    2 * WARM_UP_MS + ALONE_MS + ATTACK_MS + AFTER_MS + 100_000,
  );
});

/** Rejects when the process ends without one. */
async function nextMessage<Message>(child: ChildProcess): Promise<Message> {
  const ended = once(child, 'exit').then(() => Promise.reject(new Error('the attacker has ended')));
  const [message] = (await Promise.race([once(child, 'message'), ended])) as [Message];
  return message;
}

/** The neighbour's Runs that lost a claim. */
async function requeued({ database, agentId }: StandardSystem): Promise<unknown[]> {
  const { rows } = await database.pool.query(
    `select run_id, data from events join thread_summaries using (thread_id)
     where agent_id = $1 and type = 'run.requeued'`,
    [agentId],
  );
  return rows as unknown[];
}

interface Said {
  agentId: string;
  text: string;
}

/** Returns how often the tables of tokens and sessions were scanned. Each look-up of a credential scans one of them. */
async function credentialScans({ database }: StandardSystem): Promise<number> {
  const { rows } = await database.pool.query<{ scans: number }>(
    `select sum(seq_scan + coalesce(idx_scan, 0))::integer as scans from pg_stat_user_tables
     where relname in ('tokens', 'operator_sessions')`,
  );
  return rows[0]!.scans;
}

/** The results of all tool calls of the tenant, and the errors of its Runs. */
async function saidToTenant({ database }: StandardSystem, { agents }: Target): Promise<Said[]> {
  const { rows } = await database.pool.query<Said>(
    `select agent_id as "agentId", coalesce(data->>'result', data#>>'{error,code}') as text
     from events join thread_summaries using (thread_id)
     where agent_id = any ($1) and type in ('tool.completed', 'run.failed')`,
    [Object.values(agents)],
  );
  return rows;
}

/** The random tokens and sessions that were answered so, or at all. */
const guesses = ({ attacks }: Report, status = ''): number =>
  attacks
    .flatMap(({ answers }) => Object.entries(answers))
    .filter(([outcome]) => /^(token|session) /.test(outcome) && outcome.endsWith(status))
    .reduce((sum, [, count]) => sum + count, 0);

const countEndings = (said: readonly Said[], ofAgent: string, wanted: RegExp): number =>
  said.filter(({ agentId, text }) => agentId === ofAgent && wanted.test(text)).length;

/** Creates the hostile organization with its agents and a file whose bytes are then deleted. */
async function prepareTarget(system: StandardSystem, listening: Listening, blobs: string): Promise<Target> {
  const { pool } = system.database;
  const access = new AccessStore(pool);
  const organizationId = await access.createOrganization('Hostile');
  const personId = await access.createPerson('Mallory');
  await access.addMember(organizationId, personId);
  const publish = async (manifest: Partial<AgentManifestInput> = {}): Promise<string> => {
    const whole: AgentManifestInput = {
      name: 'hostile',
      harness: { name: 'model' },
      model: {
        ...{ provider: 'openai-compatible', name: 'scripted', baseUrl: listening.providerUrl },
        apiKey: { env: 'MODEL_KEY' },
      },
      tools: [{ pattern: '*', policy: 'allow' }],
      ...manifest,
    };
    const agentId = await createAgent(pool, { organizationId, ownerPersonId: personId, manifest: whole });
    await publishAgentVersion(pool, agentId, whole);
    return agentId;
  };
  const endless = { name: 'endless', url: listening.endlessUrl };
  const slow = { name: 'endless', url: listening.slowUrl };
  const nosy = {
    name: 'snoop',
    command: process.execPath,
    args: [SNOOPING, '1', 'nobody'],
    env: { SNOOP: dirname(blobs) },
  };
  const grabbed = { ADDRESS: { env: 'DATABASE_URL' }, USERS: { file: '/etc/passwd' } };
  const agents: Record<HostileAgent, string> = {
    files: await publish(),
    long: await publish({ concurrency: { runs: LONG_RUNS_AT_ONCE } }),
    endless: await publish({ toolServers: [endless] }),
    slow: await publish({ toolServers: [slow] }),
    nosy: await publish({ toolServers: [nosy] }),
    grabbing: await publish({ toolServers: [{ ...nosy, env: grabbed }] }),
  };
  const mint = async () => (await access.mintToken({ kind: 'person', personId, name: 'hostile' })).token;
  const mintSome = () => Promise.all(Array.from({ length: TOKENS_AN_ATTACK }, mint));
  const tokens = await Promise.all(ATTACKS.map(mintSome));
  const caller: Caller = { ...system.apis[0]!.caller, token: await mint(), agentId: agents.files };
  const lostFileId = await loseFile(caller, blobs);
  await writeFile(join(blobs, 'planted'), IN_FILES);
  return {
    organizationId,
    baseUrls: system.apis.map(({ caller: { baseUrl } }) => baseUrl),
    ...{ tokens, agents, lostFileId, session: await signIn(system) },
  };
}

async function signIn({ apis, operatorToken }: StandardSystem): Promise<Target['session']> {
  const { origin } = new URL(apis[0]!.caller.baseUrl);
  const headers = { 'content-type': 'application/json', 'spool-page-key': '', origin };
  const body = JSON.stringify({ token: operatorToken });
  const response = await fetch(`${origin}/console/session`, { method: 'POST', headers, body });
  const { pageKey } = (await response.json()) as { pageKey: string };
  return { cookie: response.headers.getSetCookie()[0]!.split(';')[0]!, pageKey };
}

/** Attaches a file and deletes its bytes from the blob store. */
async function loseFile(caller: Caller, blobs: string): Promise<string> {
  const thread = await send<ThreadAnswer>(caller, 'POST', `/agents/${caller.agentId}/threads`, { userId: 'hostile' });
  const path = `/threads/${thread.body.thread.id}/files`;
  const file = {
    name: 'lost.txt',
    contentType: 'text/plain',
    contentBase64: Buffer.from('soon gone').toString('base64'),
  };
  const { body } = await send<{ file: { id: string } }>(caller, 'POST', path, file);
  await loseBlobs(blobs);
  return body.file.id;
}

function tell(
  { attacks, cpuMs }: Report,
  ended: readonly { name: string; count: number }[],
  cpu: number[],
  seen: Record<string, Seen>,
  [before, most, soon, later]: number[][],
): void {
  const mib = (all: number[] = []): string => all.map((bytes) => Math.round(bytes / MEBIBYTE)).join(', ');
  const count = (answers: Record<string, number>): string =>
    Object.entries(answers)
      .map(([outcome, times]) => `${outcome}: ${times}`)
      .join(', ');
  reportTable('hostile-attacks', [
    '| attack | begun | requests | answers | Runs that ended as they must |',
    '|---|---|---|---|---|',
    ...attacks.map(({ name, begun, tried, answers }) => {
      const ending = ended.find((one) => one.name === name)?.count ?? '–';
      return `| ${name} | ${begun} times | ${tried} | ${count(answers)} | ${ending} |`;
    }),
  ]);
  reportTable('hostile-neighbour', [
    '| the other tenant | requests | Runs |',
    '|---|---|---|',
    ...Object.entries(seen).map(
      ([when, { requests, runs }]) => `| ${when} | ${toldTimes(requests)} | ${toldTimes(runs)} |`,
    ),
  ]);
  reportLine(
    `CPU: attacker ${cpuMs.toFixed(0)} ms; both apis, both workers, the other tenant ${cpu.map(Math.round).join(', ')} ms`,
  );
  reportLine(
    `memory of both apis and both workers, MiB: ${mib(before)} before, ${mib(most)} at most, ${mib(soon)} soon after, ` +
      `${mib(later)} after ${AFTER_MS / 1_000} s of load`,
  );
}

const reportLine = (line: string): void => reportFigure(`hostile tenant: ${line}`);
