import { setTimeout as delay } from 'node:timers/promises';
import { cpuOf } from '#testing';
import type { Bench } from '../bench.ts';
import { withCleanUp, type Defer } from '../clean-up.ts';
import type { LoadOrder } from '../load/order.ts';
import type { NodeProcess } from '../processes.ts';
import { SIZES } from '../sizes.ts';
import { installOn, startApi, startLoad, startWorker } from '../spool.ts';
import type { CountResult, Traffic } from './count-result.ts';
import { startCountedServers, type CountedServers, type ServerCounts } from './servers.ts';

/** Processes and servers of one kind of operation. */
interface Subject {
  name: CountResult['name'];
  database: string;
  servers: CountedServers;
  api: NodeProcess;
  worker: NodeProcess | null;
  /** Runs this many operations. Returns their HTTP traffic. */
  act: (clients: number, operations: number) => Promise<Traffic>;
}

/** All counts at one time. */
interface Snapshot extends ServerCounts {
  atMs: number;
  apiCpuMs: number;
  workerCpuMs: number;
}

/** Operations before each count, so that connections are open and their statements prepared. */
const WARM_UP = { perClient: 4, atLeast: 100 };
/** Statements and commands with fewer calls per operation are background noise. */
const SHOWN_FROM = 0.02;

/**
 * Counts the cost of an accepted Thread and of a Run, on a private PostgreSQL and a private Redis. A load of known size runs
 * between two snapshots. It directly follows a warm-up load, so that unfinished work is the same at both snapshots.
 *
 * Background work (dispatcher, reaper, metrics) is not part of an operation. It is counted during an idle interval first.
 * Its rate for each statement, times the length of the load, is subtracted. Two counts of accepted Threads at one client
 * differed by 0.001 statements. A Run's count depends on timing: the API reads the log once for all wake-ups that arrive
 * together. CPU time varies too: the processes still get faster, and garbage is collected.
 *
 * PostgreSQL publishes transactions of an idle backend after 10 s. Transactions are therefore counted over warm-up and load
 * together, with a pause of that length before and after.
 */
export function counts(bench: Bench): Promise<void> {
  return withCleanUp(async (defer) => {
    const servers = await startCountedServers(defer);
    await countAll('accepted Thread', 'accept', servers, bench);
    await countAll('Run', 'round-trip', servers, bench);
  });
}

function countAll(
  name: CountResult['name'],
  flow: LoadOrder['flow'],
  servers: CountedServers,
  bench: Bench,
): Promise<void> {
  return withCleanUp(async (defer) => {
    const subject = await startSubject(name, flow, servers, defer);
    await subject.act(SIZES.counted.at(-1)?.clients ?? 1, WARM_UP.atLeast);
    await delay(SIZES.settleMs);
    const transactionsBefore = await servers.readTransactions(subject.database);
    const before = await takeSnapshot(subject);
    await delay(SIZES.idleMs);
    const idle = difference(before, await takeSnapshot(subject));
    const transactions = (await servers.readTransactions(subject.database)) - transactionsBefore;
    for (const { clients, operations } of SIZES.counted) {
      bench.count(await countOnce(subject, { ...idle, transactions }, clients, operations));
    }
  });
}

async function startSubject(
  name: CountResult['name'],
  flow: LoadOrder['flow'],
  servers: CountedServers,
  defer: Defer,
): Promise<Subject> {
  const database = `counts_${flow.replaceAll('-', '_')}`;
  const spool = await installOn(await servers.newDatabase(database), servers.redisUrl, `counts-${flow}`);
  const api = await startApi(spool, defer, false);
  const worker = flow === 'accept' ? null : startWorker(spool, defer, false);
  const load = startLoad(defer);
  const { agentId, tokens } = spool;
  return {
    ...{ name, database, servers, api, worker },
    act: async (connections, operations) => {
      const until = { operations };
      return (await load({ flow, origin: api.origin, agentId, tokens, keyed: false, connections, until })).bytes;
    },
  };
}

async function takeSnapshot({ servers, database, api, worker }: Subject): Promise<Snapshot> {
  return {
    atMs: performance.now(),
    apiCpuMs: cpuOf(api.pid),
    workerCpuMs: worker === null ? 0 : cpuOf(worker.pid),
    ...(await servers.read(database)),
  };
}

function difference(before: Snapshot, after: Snapshot): Snapshot {
  const statements = [...after.statements].map(([id, { text, calls }]) => {
    return [id, { text, calls: calls - (before.statements.get(id)?.calls ?? 0) }] as const;
  });
  const traffic = (of: 'postgres' | 'redis'): Traffic => ({
    sent: after[of].sent - before[of].sent,
    received: after[of].received - before[of].received,
  });
  return {
    atMs: after.atMs - before.atMs,
    apiCpuMs: after.apiCpuMs - before.apiCpuMs,
    workerCpuMs: after.workerCpuMs - before.workerCpuMs,
    statements: new Map(statements),
    redisCommands: after.redisCommands - before.redisCommands,
    redisCalls: new Map(
      [...after.redisCalls].map(([name, calls]) => [name, calls - (before.redisCalls.get(name) ?? 0)]),
    ),
    postgres: traffic('postgres'),
    redis: traffic('redis'),
    postgresCpuMs: after.postgresCpuMs - before.postgresCpuMs,
    redisCpuMs: after.redisCpuMs - before.redisCpuMs,
  };
}

type Idle = Snapshot & { transactions: number };

/** Counts one load, minus the background work of the same time. */
async function countOnce(subject: Subject, idle: Idle, clients: number, operations: number): Promise<CountResult> {
  const { servers, database, name, worker } = subject;
  const settledAt = performance.now();
  const settled = await servers.readTransactions(database);
  const warmUp = Math.max(WARM_UP.atLeast, WARM_UP.perClient * clients);
  await subject.act(clients, warmUp);
  const before = await takeSnapshot(subject);
  const http = await subject.act(clients, operations);
  const counted = difference(before, await takeSnapshot(subject));
  await delay(SIZES.settleMs);
  const transactions = (await servers.readTransactions(database)) - settled;
  const transactionsMs = performance.now() - settledAt;

  const each = (of: (snapshot: Snapshot) => number): number =>
    (of(counted) - (of(idle) / idle.atMs) * counted.atMs) / operations;
  const traffic = (of: 'postgres' | 'redis'): Traffic => ({
    sent: each((snapshot) => snapshot[of].sent),
    received: each((snapshot) => snapshot[of].received),
  });
  const statements = [...counted.statements].map(([id, { text }]) => {
    return { text, calls: each((snapshot) => snapshot.statements.get(id)?.calls ?? 0) };
  });
  const redisCalls = [...counted.redisCalls.keys()].map((text) => {
    return { text, calls: each((snapshot) => snapshot.redisCalls.get(text) ?? 0) };
  });
  const operation = `${name}, ${clients} ${clients === 1 ? 'client' : 'clients'}`;
  printCalls(`statements for each ${operation}`, statements);
  printCalls(`Redis commands for each ${operation}`, redisCalls);
  return {
    ...{ name, clients, operations },
    statements: statements.reduce((sum, { calls }) => sum + calls, 0),
    transactions: (transactions - (idle.transactions / idle.atMs) * transactionsMs) / (warmUp + operations),
    redisCommands: each((snapshot) => snapshot.redisCommands),
    bytes: {
      postgres: traffic('postgres'),
      redis: traffic('redis'),
      http: { sent: http.sent / operations, received: http.received / operations },
    },
    cpuMs: {
      api: each((snapshot) => snapshot.apiCpuMs),
      worker: worker && each((snapshot) => snapshot.workerCpuMs),
      postgres: each((snapshot) => snapshot.postgresCpuMs),
      redis: each((snapshot) => snapshot.redisCpuMs),
    },
  };
}

/** Prints the calls of an operation, most frequent first. */
function printCalls(title: string, all: { text: string; calls: number }[]): void {
  const shown = all.filter(({ calls }) => calls >= SHOWN_FROM).toSorted((a, b) => b.calls - a.calls);
  const lines = shown.map(({ text, calls }) => `  ${calls.toFixed(2)} × ${text.replaceAll(/\s+/g, ' ').slice(0, 90)}`);
  process.stderr.write(`counts: ${title}:\n${lines.join('\n')}\n`);
}
