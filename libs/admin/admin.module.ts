import { Inject, Module, type OnModuleDestroy } from '@nestjs/common';
import { BrowserTokens, SignedTokens } from '#access';
import { AgentCatalogue, AgentsModule, HARNESSES, type Harnesses } from '#agents';
import { CommandHandler, EventStoreModule, ThreadStore } from '#event-store';
import { BlobKeeper, FilesModule, FileStore } from '#files';
import { LIVE_BUS, LiveModule, type LiveBus } from '#live';
import { CONFIG, DATABASE, LOGGER, parseSigningKeys, type Config, type Database, type Logger } from '#platform';
import { QueueControls, RUN_QUEUE, RunQueueModule, type RunQueue } from '#run-queue';
import { Threads, ThreadsModule } from '#threads';
import { adminHandlers } from './admin-handlers.ts';
import { BulkRunner } from './bulk/bulk-runner.ts';

/** Injection token of the AdminHandlers. */
export const ADMIN_HANDLERS = Symbol('ADMIN_HANDLERS');

/** All operations of operators. Needs PlatformModule. */
@Module({
  imports: [AgentsModule, EventStoreModule, FilesModule, LiveModule, RunQueueModule, ThreadsModule],
  providers: [
    {
      provide: BulkRunner,
      inject: [DATABASE, Threads, AgentCatalogue, LOGGER],
      useFactory: ({ pool }: Database, threads: Threads, agents: AgentCatalogue, logger: Logger) =>
        new BulkRunner({ pool, threads, agents, logger }),
    },
    {
      provide: ADMIN_HANDLERS,
      inject: [
        ...[CONFIG, DATABASE, AgentCatalogue, HARNESSES, BulkRunner],
        ...[ThreadStore, CommandHandler, Threads, BlobKeeper, FileStore, LIVE_BUS, RUN_QUEUE, QueueControls],
      ],
      useFactory: (
        config: Config,
        { pool }: Database,
        agents: AgentCatalogue,
        harnesses: Harnesses,
        bulk: BulkRunner,
        store: ThreadStore,
        handler: CommandHandler,
        threads: Threads,
        blobs: BlobKeeper,
        files: FileStore,
        bus: LiveBus,
        queue: RunQueue,
        controls: QueueControls,
      ) => {
        // Not of AccessModule, which `spool --local` must not load: it registers an API process.
        const browserTokens = new BrowserTokens(new SignedTokens(parseSigningKeys(config.BROWSER_TOKEN_KEYS)));
        return adminHandlers({
          ...{ config, pool, agents, harnesses, bulk, store, handler, threads, blobs, files, bus, queue, controls },
          browserTokens,
        });
      },
    },
  ],
  exports: [ADMIN_HANDLERS, BulkRunner],
})
export class AdminModule implements OnModuleDestroy {
  constructor(@Inject(BulkRunner) private readonly bulk: BulkRunner) {}

  onModuleDestroy(): Promise<void> {
    return this.bulk.stop();
  }
}
