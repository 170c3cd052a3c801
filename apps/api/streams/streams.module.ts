import { Inject, Module, type BeforeApplicationShutdown } from '@nestjs/common';
import { Authenticator } from '#access';
import { threadEventFrame } from '#contract';
import { EventStoreModule, ThreadStore } from '#event-store';
import { LIVE_BUS, LiveHub, LiveModule, type LiveBus } from '#live';
import { CONFIG, LOGGER, PolicyWatch, type Config, type Logger } from '#platform';
import { ApiAccessModule } from '../api-access.module.ts';
import { AccessGuard } from '../access-guard.ts';
import { StreamService } from './stream-service.ts';
import { StreamsController } from './streams.controller.ts';

/** The event stream. Needs the request hooks of ApiModule. */
@Module({
  imports: [ApiAccessModule, EventStoreModule, LiveModule],
  controllers: [StreamsController],
  providers: [
    {
      provide: LiveHub,
      inject: [ThreadStore, LIVE_BUS, LOGGER],
      useFactory: (store: ThreadStore, bus: LiveBus, logger: Logger) =>
        new LiveHub({ store, bus, logger, render: threadEventFrame }),
    },
    {
      provide: StreamService,
      inject: [Authenticator, AccessGuard, ThreadStore, LiveHub, PolicyWatch, CONFIG, LOGGER],
      useFactory: (
        authenticator: Authenticator,
        access: AccessGuard,
        store: ThreadStore,
        hub: LiveHub,
        watch: PolicyWatch,
        config: Config,
        logger: Logger,
      ) => new StreamService({ authenticator, access, store, hub, watch, config, logger }),
    },
  ],
})
export class StreamsModule implements BeforeApplicationShutdown {
  constructor(
    @Inject(StreamService) private readonly streams: StreamService,
    @Inject(LiveHub) private readonly hub: LiveHub,
  ) {}

  /** Runs after the server stopped listening (ApiModule.onModuleDestroy) and before it waits for its connections. */
  beforeApplicationShutdown(): void {
    this.streams.openStreams.close();
    this.hub.close();
  }
}
