import { harnessesByName, type AgentCatalogue, type Harness } from '#agents';
import { CommandHandler, ThreadStore, type Commit } from '#event-store';
import type { BlobKeeper, FileStore } from '#files';
import { ByteBudget, type Logger } from '#platform';
import { LeaseKeeper, Reaper, reaperLoop, RunEngine, WorkerLoop } from '#run-engine';
import { Dispatcher, LimitedRuns, QueueControls, RunEnqueuer } from '#run-queue';
import { TaskPool } from '#task-pool';
import { simulatedPool } from './database-clients.ts';
import type { DatabaseServer } from './database-server.ts';
import { simulatedRenewer } from './lease-renewer.ts';
import type { WakeNetwork } from './live-bus.ts';
import type { QueueServer } from './queue-server.ts';
import type { SimulatedProcess } from './scheduler.ts';

export const QUEUE_NAME = 'runs';

/** What all processes share: servers, and what they are told at their start. */
export interface Site {
  database: DatabaseServer;
  queue: QueueServer;
  wakes: WakeNetwork;
  harness: Harness;
  /** The agents, as a process knows them. */
  catalogueOf: (process: SimulatedProcess) => AgentCatalogue;
  /** The part of all slots that one organization may hold. */
  slotsPercent: number;
  leaseMs: number;
  graceMs: number;
  logger: Logger;
}

/** An API process, as far as Threads and Runs go. */
export type Api = ReturnType<typeof startApi>;

/** One lane, so that groups are common; none in every second process, which sends its appends alone as older releases do. */
const lanesOf = ({ name }: SimulatedProcess): number => Number(/\d+$/.exec(name)?.[0]) % 2;

/** The parts are those of the modules, put together as they do it. */
export function startApi(site: Site, process: SimulatedProcess) {
  const pool = simulatedPool(site.database, process);
  const { logger } = site;
  const queue = site.queue.connect(process);
  const bus = site.wakes.connect(process);
  const store = new ThreadStore(pool, { lanes: lanesOf(process), readLanes: 0 });
  const controls = new QueueControls(pool, QUEUE_NAME, site.slotsPercent);
  const enqueuer = new RunEnqueuer({ queue, controls, logger });
  const limitedRuns = new LimitedRuns({ pool, controls, enqueueSoon: (job) => enqueuer.enqueueSoon(job), logger });
  const onCommit = (commit: Commit): void => {
    commit.jobs.forEach((job) => enqueuer.enqueueSoon(job));
    limitedRuns.onCommit(commit);
    bus.publish(commit.after.threadId, commit.after.version);
  };
  const onDeleted = (threadId: string, version: number): void => bus.publish(threadId, version);
  const handler = new CommandHandler({ store, leaseMs: site.leaseMs, onCommit, onDeleted });
  return { process, pool, store, queue, bus, controls, enqueuer, limitedRuns, handler };
}

export type Worker = ReturnType<typeof startWorker>;

/** A worker process: an engine in its loop, and the two loops that one process leads. */
export function startWorker(site: Site, process: SimulatedProcess, slots: number) {
  const parts = startApi(site, process);
  const { pool, store, queue, bus, controls, enqueuer, limitedRuns, handler } = parts;
  const { logger, leaseMs, graceMs } = site;
  controls.ownSlots = slots;
  const holder = process.name;
  const leases = new LeaseKeeper({ renewer: simulatedRenewer(pool, holder, leaseMs), leaseMs, logger });
  const engine = new RunEngine({
    ...{ store, handler, pool, leases, holder, leaseMs, logger },
    catalogue: site.catalogueOf(process),
    harnesses: harnessesByName([site.harness]),
    memory: { budget: new ByteBudget({ process: Infinity, share: Infinity }) },
    tasks: new TaskPool({ size: 1, memoryBytes: 256 * 1024 * 1024, logger }),
    blobs: NO_BLOBS,
    files: NO_FILES,
    folderLimits: { maxFiles: 0, maxBytes: 0, maxFileBytes: 0 },
    enqueueSoon: (job) => enqueuer.enqueueSoon(job),
    onLimited: (organizationId) => limitedRuns.onLimited(organizationId),
    slotsPerOrganization: () => controls.slotsPerOrganization(),
    isPaused: () => controls.isPaused(),
  });
  const loop = new WorkerLoop({ pool, queue, bus, engine, leases, holder, slots, graceMs, logger });
  const databaseUrl = '';
  const reaper = new Reaper({ pool, handler, isPaused: () => controls.isHeld(), leaseMs, logger });
  const reaping = reaperLoop(reaper, { databaseUrl, logger });
  const dispatcher = new Dispatcher({ databaseUrl, pool, queue, controls, logger });
  enqueuer.onDropped(() => dispatcher.nudge());
  const start = async (): Promise<void> => {
    dispatcher.start();
    reaping.start();
    await loop.start();
  };
  /** As the modules do it, in their order. */
  const stop = async (): Promise<void> => {
    await Promise.all([reaping.stop(), loop.stop(), dispatcher.stop()]);
    await limitedRuns.close();
    await enqueuer.close();
  };
  return { ...parts, leases, loop, start, stop };
}

/** No tool makes files here. */
const NO_BLOBS = {} as BlobKeeper;
const NO_FILES = {} as FileStore;
