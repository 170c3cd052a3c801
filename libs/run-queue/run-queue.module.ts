import { Inject, Module, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import { CommitFeed, EventStoreModule } from '#event-store';
import {
  CONFIG,
  DATABASE,
  isTracing,
  LOGGER,
  requireDatabaseUrl,
  type Config,
  type Database,
  type Logger,
} from '#platform';
import { Dispatcher } from './dispatcher.ts';
import { LimitedRuns } from './limited-runs.ts';
import { openRunQueue } from './open-run-queue.ts';
import { QueueControls } from './queue-controls.ts';
import { RunEnqueuer } from './run-enqueuer.ts';
import type { RunQueue, ShownRunQueue } from './run-queue.ts';
import { traceQueue } from './trace-queue.ts';

/** Injection token of the RunQueue. */
export const RUN_QUEUE = Symbol('RUN_QUEUE');

/** Injection token of the BullMQ `Queue` that operators can inspect. */
export const SHOWN_QUEUE = Symbol('SHOWN_QUEUE');

/** The queue of Runs, and the fast path, which enqueues the Runs that this process commits. */
@Module({
  imports: [EventStoreModule],
  providers: [
    {
      provide: RUN_QUEUE,
      inject: [CONFIG, LOGGER, DATABASE],
      useFactory: async (config: Config, logger: Logger, { pool }: Database) => {
        const { QUEUE_NAME: name, QUEUE_URL: url = requireDatabaseUrl(config) } = config;
        const queue = await openRunQueue({ url, name, logger });
        if (isTracing()) traceQueue(queue, { pool, name });
        return queue;
      },
    },
    { provide: SHOWN_QUEUE, inject: [RUN_QUEUE], useFactory: ({ shown }: ShownRunQueue) => shown },
    {
      provide: QueueControls,
      inject: [DATABASE, CONFIG],
      useFactory: ({ pool }: Database, { QUEUE_NAME, SLOTS_PERCENT_PER_ORGANIZATION: percent }: Config) =>
        new QueueControls(pool, QUEUE_NAME, percent),
    },
    {
      provide: RunEnqueuer,
      inject: [RUN_QUEUE, QueueControls, LOGGER],
      useFactory: (queue: RunQueue, controls: QueueControls, logger: Logger) =>
        new RunEnqueuer({ queue, controls, logger }),
    },
    {
      provide: LimitedRuns,
      inject: [DATABASE, QueueControls, RunEnqueuer, LOGGER],
      useFactory: ({ pool }: Database, controls: QueueControls, enqueuer: RunEnqueuer, logger: Logger) =>
        new LimitedRuns({ pool, controls, enqueueSoon: (job) => enqueuer.enqueueSoon(job), logger }),
    },
  ],
  exports: [RUN_QUEUE, SHOWN_QUEUE, QueueControls, RunEnqueuer, LimitedRuns],
})
export class RunQueueModule implements OnApplicationShutdown {
  constructor(
    @Inject(RUN_QUEUE) private readonly queue: RunQueue,
    @Inject(RunEnqueuer) private readonly enqueuer: RunEnqueuer,
    @Inject(LimitedRuns) private readonly limitedRuns: LimitedRuns,
    @Inject(CommitFeed) feed: CommitFeed,
  ) {
    feed.onCommit((commit) => commit.jobs.forEach((job) => enqueuer.enqueueSoon(job)));
    feed.onCommit((commit) => limitedRuns.onCommit(commit));
  }

  /** Closes the queue last, because ending Runs at shutdown (`beforeApplicationShutdown`) needs it. */
  async onApplicationShutdown(): Promise<void> {
    await this.limitedRuns.close();
    await this.enqueuer.close();
    await this.queue.close();
  }
}

/** The dispatcher, for processes that may lead: workers and the standalone. */
@Module({
  imports: [RunQueueModule],
  providers: [
    {
      provide: Dispatcher,
      inject: [CONFIG, DATABASE, RUN_QUEUE, QueueControls, LOGGER],
      useFactory: (config: Config, { pool }: Database, queue: RunQueue, controls: QueueControls, logger: Logger) =>
        new Dispatcher({ databaseUrl: requireDatabaseUrl(config), pool, queue, controls, logger }),
    },
  ],
  exports: [Dispatcher],
})
export class DispatcherModule implements OnApplicationBootstrap, OnApplicationShutdown {
  constructor(
    @Inject(Dispatcher) private readonly dispatcher: Dispatcher,
    @Inject(RunEnqueuer) enqueuer: RunEnqueuer,
  ) {
    enqueuer.onDropped(() => dispatcher.nudge());
  }

  onApplicationBootstrap(): void {
    this.dispatcher.start();
  }

  /** Stops after the hand-overs of a worker (`beforeApplicationShutdown`), to enqueue the Runs that the fast path drops. */
  async onApplicationShutdown(): Promise<void> {
    await this.dispatcher.stop();
  }
}
