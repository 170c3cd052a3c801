import { Inject, Module, type OnApplicationShutdown } from '@nestjs/common';
import { CommitFeed, EventStoreModule } from '#event-store';
import { CONFIG, LOGGER } from '#platform';
import { LIVE_BUS, type LiveBus } from './bus.ts';
import { newsOf } from './news.ts';
import { openLiveBus } from './open-live-bus.ts';

/** Provides the bus of wake-ups, and publishes the commits of this process. */
@Module({
  imports: [EventStoreModule],
  providers: [{ provide: LIVE_BUS, inject: [CONFIG, LOGGER], useFactory: openLiveBus }],
  exports: [LIVE_BUS],
})
export class LiveModule implements OnApplicationShutdown {
  constructor(
    @Inject(LIVE_BUS) private readonly bus: LiveBus,
    @Inject(CommitFeed) feed: CommitFeed,
  ) {
    feed.onCommit((commit) => {
      const { threadId, version } = commit.after;
      if (commit.events.length > 0) bus.publish(threadId, version, newsOf(commit));
    });
    feed.onDeleted((threadId, version) => bus.publish(threadId, version));
  }

  /** Closes the bus in the last phase, because other components commit until then. */
  async onApplicationShutdown(): Promise<void> {
    await this.bus.close();
  }
}
