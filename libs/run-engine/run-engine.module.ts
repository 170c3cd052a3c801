import { Inject, Module, type BeforeApplicationShutdown, type OnApplicationBootstrap } from '@nestjs/common';
import { AgentCatalogue, AgentsModule, HARNESSES, type Harnesses } from '#agents';
import { CommandHandler, EventStoreModule, ThreadStore, type RunOffer } from '#event-store';
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
import { LimitedRuns, QueueControls, RUN_QUEUE, RunOffers, RunQueueModule, type RunQueue } from '#run-queue';
import { LeaseKeeper } from './lease-keeper.ts';
import { Reaper, reaperLoop } from './reaper.ts';
import { RunEngine } from './run-engine.ts';
import { WorkerLoop } from './worker-loop.ts';

/** Injection tokens: the name of this worker process in claims, and the loop that the reaper works in. */
const HOLDER = Symbol('HOLDER');
const REAPER_LOOP = Symbol('REAPER_LOOP');

/** A worker: executes Runs that the queue offers, and takes back those of lost workers while it leads. */
@Module({
  imports: [EventStoreModule, LiveModule, RunQueueModule, AgentsModule, FilesModule],
  providers: [
    { provide: HOLDER, useFactory: () => newId() },
    {
      provide: LeaseKeeper,
      inject: [DATABASE, CONFIG, LOGGER, HOLDER],
      useFactory: ({ pool }: Database, { LEASE_MS: leaseMs }: Config, logger: Logger, holder: string) =>
        new LeaseKeeper({ pool, holder, leaseMs, logger }),
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
        RunOffers,
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
        offers: RunOffers,
        limitedRuns: LimitedRuns,
        controls: QueueControls,
        { LEASE_MS: leaseMs, FILE_LIMIT_BYTES: maxFileBytes, FOLDER_FILES: maxFiles, FOLDER_BYTES: maxBytes }: Config,
        logger: Logger,
        holder: string,
      ) => {
        const offerSoon = (offer: RunOffer): void => offers.offerSoon(offer);
        const onLimited = (organizationId: string): void => limitedRuns.onLimited(organizationId);
        const isPaused = () => controls.isPaused();
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
          offerSoon,
          onLimited,
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
        { WORKER_SLOTS: slots, SHUTDOWN_GRACE_MS: graceMs }: Config,
        logger: Logger,
        holder: string,
      ) => new WorkerLoop({ pool, queue, bus, engine, leases, slots, graceMs, logger, holder }),
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

  /** Before the connections go: what is handed over must still be offered to others. */
  async beforeApplicationShutdown(): Promise<void> {
    await Promise.all([this.reaper.stop(), this.worker.stop()]);
  }
}
