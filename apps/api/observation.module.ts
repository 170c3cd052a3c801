import { Module } from '@nestjs/common';
import { AccessModule, RateLimiter } from '#access';
import { LIVE_BUS, LiveModule, type LiveBus } from '#live';
import { DATABASE, PolicyWatch, type Database } from '#platform';
import { RUN_QUEUE, RunQueueModule, type RunQueue } from '#run-queue';
import { HealthService } from './health-service.ts';

/** What the API says of itself: its health. */
@Module({
  imports: [AccessModule, LiveModule, RunQueueModule],
  providers: [
    {
      provide: HealthService,
      inject: [DATABASE, PolicyWatch, RUN_QUEUE, LIVE_BUS, RateLimiter],
      useFactory: ({ pool }: Database, policy: PolicyWatch, queue: RunQueue, bus: LiveBus, limiter: RateLimiter) =>
        new HealthService({ pool, policy, queue, bus, limiter }),
    },
  ],
  exports: [HealthService],
})
export class ObservationModule {}
