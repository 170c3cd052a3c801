import { Inject, Module, type BeforeApplicationShutdown, type OnApplicationBootstrap } from '@nestjs/common';
import { AgentCatalogue, AgentsModule, HARNESSES, workerSandbox, type Harnesses } from '#agents';
import { CommandHandler, EventStoreModule, ThreadStore, type RunJob } from '#event-store';
import { BlobKeeper, FilesModule, FileStore } from '#files';
import { LIVE_BUS, LiveModule, type LiveBus } from '#live';
import {
  CONFIG,
  DATABASE,
  LOGGER,
  newId,
  requireDatabaseUrl,
  type Config,
  type Database,
  type LeaderLoop,
  type Logger,
} from '#platform';
import { LimitedRuns, QueueControls, RUN_QUEUE, RunEnqueuer, RunQueueModule, type RunQueue } from '#run-queue';
import { TaskPool, TaskPoolModule } from '#task-pool';
import { LeaseKeeper } from './lease-keeper.ts';
import { LeaseThread } from './lease-thread.ts';
import { Reaper, reaperLoop } from './reaper.ts';
import { RunEngine } from './run-engine.ts';
import { runMemoryBudget } from './run-memory.ts';
import { WorkerLoop } from './worker-loop.ts';

/** Injection tokens: the name of this worker process in claims, and the leader loop of the reaper. */
const HOLDER = Symbol('HOLDER');
const REAPER_LOOP = Symbol('REAPER_LOOP');

/** A worker: executes Runs from the queue, and reclaims Runs of lost workers while it leads. */
@Module({
  imports: [EventStoreModule, LiveModule, RunQueueModule, AgentsModule, FilesModule, TaskPoolModule],
  providers: [
    { provide: HOLDER, useFactory: () => newId() },
    {
      provide: LeaseKeeper,
      inject: [CONFIG, LOGGER, HOLDER],
      useFactory: (config: Config, logger: Logger, holder: string) => {
        const { LEASE_MS: leaseMs } = config;
        const database = { url: requireDatabaseUrl(config), applicationName: 'spool leases' };
        const renewer = new LeaseThread({ database, holder, leaseMs, logger });
        return new LeaseKeeper({ renewer, leaseMs, logger });
      },
    },
    {
      provide: RunEngine,
      inject: [
        ThreadStore,
        CommandHandler,
        DATABASE,
        AgentCatalogue,
        HARNESSES,
        BlobKeeper,
        FileStore,
        LeaseKeeper,
        TaskPool,
        RunEnqueuer,
        LimitedRuns,
        QueueControls,
        CONFIG,
        LOGGER,
        HOLDER,
      ],
      useFactory: (
        store: ThreadStore,
        handler: CommandHandler,
        { pool }: Database,
        catalogue: AgentCatalogue,
        harnesses: Harnesses,
        blobs: BlobKeeper,
        files: FileStore,
        leases: LeaseKeeper,
        tasks: TaskPool,
        enqueuer: RunEnqueuer,
        limitedRuns: LimitedRuns,
        controls: QueueControls,
        config: Config,
        logger: Logger,
        holder: string,
      ) => {
        const {
          LEASE_MS: leaseMs,
          FILE_LIMIT_BYTES: maxFileBytes,
          FOLDER_FILES: maxFiles,
          FOLDER_BYTES: maxBytes,
        } = config;
        const enqueueSoon = (job: RunJob): void => enqueuer.enqueueSoon(job);
        const onLimited = (organizationId: string): void => limitedRuns.onLimited(organizationId);
        const isPaused = () => controls.isPaused();
        controls.ownSlots = config.WORKER_SLOTS;
        const slotsPerOrganization = () => controls.slotsPerOrganization();
        return new RunEngine({
          store,
          handler,
          pool,
          catalogue,
          harnesses,
          blobs,
          files,
          folderLimits: { maxFiles, maxBytes, maxFileBytes },
          leases,
          tasks,
          memory: { budget: runMemoryBudget(config) },
          enqueueSoon,
          onLimited,
          slotsPerOrganization,
          isPaused,
          leaseMs,
          logger,
          holder,
        });
      },
    },
    {
      provide: WorkerLoop,
      inject: [DATABASE, RUN_QUEUE, LIVE_BUS, RunEngine, LeaseKeeper, CONFIG, LOGGER, HOLDER],
      useFactory: (
        { pool }: Database,
        queue: RunQueue,
        bus: LiveBus,
        engine: RunEngine,
        leases: LeaseKeeper,
        config: Config,
        logger: Logger,
        holder: string,
      ) => {
        const { WORKER_SLOTS: slots, SHUTDOWN_GRACE_MS: graceMs } = config;
        const reportSandbox = () => workerSandbox(config, process.env);
        return new WorkerLoop({ pool, queue, bus, engine, leases, slots, reportSandbox, graceMs, logger, holder });
      },
    },
    {
      provide: REAPER_LOOP,
      inject: [DATABASE, CommandHandler, QueueControls, CONFIG, LOGGER],
      useFactory: (
        { pool }: Database,
        handler: CommandHandler,
        controls: QueueControls,
        config: Config,
        logger: Logger,
      ) => {
        const isPaused = () => controls.isHeld();
        const reaper = new Reaper({ pool, handler, isPaused, leaseMs: config.LEASE_MS, logger });
        return reaperLoop(reaper, { databaseUrl: requireDatabaseUrl(config), logger });
      },
    },
  ],
  exports: [WorkerLoop, RunEngine],
})
export class RunEngineModule implements OnApplicationBootstrap, BeforeApplicationShutdown {
  constructor(
    @Inject(WorkerLoop) private readonly worker: WorkerLoop,
    @Inject(REAPER_LOOP) private readonly reaper: LeaderLoop,
  ) {}

  async onApplicationBootstrap(): Promise<void> {
    this.reaper.start();
    await this.worker.start();
  }

  /** Stops before the connections close, because Runs that are handed over must still be enqueued. */
  async beforeApplicationShutdown(): Promise<void> {
    await Promise.all([this.reaper.stop(), this.worker.stop()]);
  }
}
