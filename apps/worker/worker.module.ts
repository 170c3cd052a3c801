import {
  Inject,
  Module,
  type BeforeApplicationShutdown,
  type DynamicModule,
  type OnApplicationBootstrap,
} from '@nestjs/common';
import { CommandHandler, EventStoreModule, ThreadStore } from '#event-store';
import { BlobKeeper, FilesModule, FileStore } from '#files';
import {
  CONFIG,
  DATABASE,
  LOGGER,
  PlatformModule,
  PolicyWatch,
  type Config,
  type Database,
  type LeaderLoop,
  type Logger,
} from '#platform';
import { LIVE_BUS, LiveModule, type LiveBus } from '#live';
import { RunEngineModule, WorkerLoop } from '#run-engine';
import { DispatcherModule, RUN_QUEUE, RunQueueModule, type RunQueue } from '#run-queue';
import { WorkerHealth } from './worker-health.ts';
import { Housekeeping, housekeepingLoop } from './housekeeping.ts';

/** Injection token of the housekeeping loop. */
const HOUSEKEEPING_LOOP = Symbol('HOUSEKEEPING_LOOP');

/** A worker and the background loops. Needs PlatformModule, which `forRoot` adds for a dedicated process. */
@Module({
  imports: [RunEngineModule, DispatcherModule, EventStoreModule, FilesModule, LiveModule, RunQueueModule],
  providers: [
    {
      provide: WorkerHealth,
      inject: [DATABASE, PolicyWatch, RUN_QUEUE, LIVE_BUS, WorkerLoop],
      useFactory: ({ pool }: Database, policy: PolicyWatch, queue: RunQueue, bus: LiveBus, loop: WorkerLoop) =>
        new WorkerHealth({ pool, policy, queue, bus, loop }),
    },
    {
      provide: HOUSEKEEPING_LOOP,
      inject: [DATABASE, ThreadStore, CommandHandler, FileStore, BlobKeeper, CONFIG, LOGGER],
      useFactory: (
        { pool }: Database,
        store: ThreadStore,
        handler: CommandHandler,
        files: FileStore,
        blobs: BlobKeeper,
        settings: Config,
        logger: Logger,
      ) => housekeepingLoop(new Housekeeping({ pool, store, handler, files, blobs, settings }), settings, logger),
    },
  ],
})
export class WorkerModule implements OnApplicationBootstrap, BeforeApplicationShutdown {
  constructor(@Inject(HOUSEKEEPING_LOOP) private readonly housekeeping: LeaderLoop) {}

  static forRoot(config: Config, logger: Logger): DynamicModule {
    return { module: WorkerModule, imports: [PlatformModule.forRoot(config, logger)] };
  }

  onApplicationBootstrap(): void {
    this.housekeeping.start();
  }

  async beforeApplicationShutdown(): Promise<void> {
    await this.housekeeping.stop();
  }
}
