import { existsSync, mkdirSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { cpuOf } from '#testing';
import type { Bench } from './bench.ts';
import { withCleanUp, type Defer } from './clean-up.ts';
import type { LoadAnswer, LoadOrder } from './load/order.ts';
import type { NodeProcess } from './processes.ts';
import { SIZES } from './sizes.ts';
import { install, startApi, startLoad, startWorker, type Installation } from './spool.ts';

/** The share of a core that each process may use, so that eight of them and PostgreSQL fit on two cores. */
const QUOTA = 0.1;
const CLIENTS = 16;

/** API processes with as many workers, and their load. */
interface Fleet {
  api: (NodeProcess & { origin: string })[];
  workers: NodeProcess[];
  load: ((order: LoadOrder) => Promise<LoadAnswer>)[];
}

/** The CPU of one process: milliseconds for each Run, and the share of a core without load. */
interface Cost {
  perRun: number;
  idle: number;
}

/**
 * Predicts the rate of Runs of 2, 4 and 8 processes from the CPU of one API process and one worker, and measures it. Each process is
 * limited by a cgroup. Where none can be made, only 2 processes run, without a limit.
 */
export function scaling({ services }: Bench): Promise<void> {
  return withCleanUp(async (defer) => {
    const spool = await install(services, defer);
    const { fleets, fleetMs } = SIZES;
    const cost = await withCleanUp(async (ofOne) => costOf(await startFleet(spool, 1, ofOne), spool, fleetMs));
    print(`for each Run: api ${cost.api.perRun.toFixed(2)} ms, worker ${cost.worker.perRun.toFixed(2)} ms`);
    const quota = openQuota(defer);
    if (quota === null) print('no cgroup can limit CPU here: only 2 processes, without a limit');
    const rows = ['| processes | predicted Runs/s | measured Runs/s | measured / predicted |', '|---|---|---|---|'];
    for (const pairs of quota === null ? [1] : fleets) {
      await withCleanUp(async (ofFleet) => {
        const fleet = await startFleet(spool, pairs, ofFleet);
        // Without a limit, because a new process needs seconds of CPU until its code is compiled.
        for (let round = 0; round < 2; round++) await runsPerSecond(fleet, spool, fleetMs);
        for (const { pid } of [...fleet.api, ...fleet.workers]) quota?.(pid);
        const predicted =
          pairs * Math.min(...[cost.api, cost.worker].map((of) => rateOf(of, quota === null ? 1 : QUOTA)));
        const measured = await runsPerSecond(fleet, spool, fleetMs);
        const cells = [2 * pairs, predicted.toFixed(0), measured.toFixed(0), (measured / predicted).toFixed(2)];
        rows.push(`| ${cells.join(' | ')} |`);
      });
    }
    process.stdout.write(`\n${rows.join('\n')}\n`);
  });
}

/** Returns how many Runs a second a process can take part in with this share of a core. */
const rateOf = ({ perRun, idle }: Cost, share: number): number => ((share - idle) * 1_000) / perRun;

async function costOf(fleet: Fleet, spool: Installation, forMs: number): Promise<{ api: Cost; worker: Cost }> {
  const processes = [...fleet.api, ...fleet.workers];
  const used = async (work: () => Promise<unknown>): Promise<number[]> => {
    const before = processes.map(({ pid }) => cpuOf(pid));
    await work();
    return processes.map(({ pid }, i) => cpuOf(pid) - before[i]!);
  };
  await runsPerSecond(fleet, spool, forMs);
  const idle = await used(() => new Promise((resolve) => setTimeout(resolve, forMs)));
  let rate = 0;
  const busy = await used(async () => (rate = await runsPerSecond(fleet, spool, forMs)));
  const [api, worker] = processes.map((_, i) => ({
    perRun: (busy[i]! - idle[i]!) / ((rate * forMs) / 1_000),
    idle: idle[i]! / forMs,
  }));
  return { api: api!, worker: worker! };
}

async function startFleet(spool: Installation, pairs: number, defer: Defer): Promise<Fleet> {
  const pair = Array.from({ length: pairs });
  const api = await Promise.all(pair.map(() => startApi(spool, defer, false)));
  const workers = pair.map(() => startWorker(spool, defer, false));
  return { api, workers, load: pair.map(() => startLoad(defer)) };
}

async function runsPerSecond({ api, load }: Fleet, spool: Installation, forMs: number): Promise<number> {
  const { agentId, tokens } = spool;
  const order = { flow: 'round-trip', agentId, tokens, keyed: false, connections: CLIENTS } as const;
  const answers = load.map((send, i) => send({ ...order, origin: api[i]!.origin, until: { ms: forMs } }));
  return (await Promise.all(answers)).reduce((sum, { figures }) => sum + figures.perSecond, 0);
}

/** Returns a function that limits a process; null if this machine has no cgroup of CPU that this user may change. */
function openQuota(defer: Defer): ((pid: number) => void) | null {
  // Version 1 has a hierarchy for CPU alone.
  const v1 = existsSync('/sys/fs/cgroup/cpu');
  const root = v1 ? '/sys/fs/cgroup/cpu' : '/sys/fs/cgroup';
  const periodUs = 20_000;
  const quotaUs = periodUs * QUOTA;
  let made = 0;
  const limit = (pid: number): void => {
    const group = join(root, `spool-bench-${process.pid}-${++made}`);
    mkdirSync(group);
    defer(async () => rmdirSync(group));
    if (v1) {
      writeFileSync(join(group, 'cpu.cfs_period_us'), `${periodUs}`);
      writeFileSync(join(group, 'cpu.cfs_quota_us'), `${quotaUs}`);
    } else writeFileSync(join(group, 'cpu.max'), `${quotaUs} ${periodUs}`);
    writeFileSync(join(group, 'cgroup.procs'), `${pid}`);
  };
  try {
    // Tries it with nothing in it.
    const group = join(root, `spool-bench-${process.pid}`);
    mkdirSync(group);
    const isThere = existsSync(join(group, v1 ? 'cpu.cfs_quota_us' : 'cpu.max'));
    rmdirSync(group);
    return isThere ? limit : null;
  } catch {
    return null;
  }
}

const print = (line: string): void => void process.stderr.write(`scaling: ${line}\n`);
