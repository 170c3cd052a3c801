import { Inject, Module, type OnApplicationShutdown } from '@nestjs/common';
import { CONFIG, DATABASE, LOGGER, PolicyWatch, redisUrlOf, type Config, type Database, type Logger } from '#platform';
import { AccessStore } from './access-store.ts';
import { Authenticator } from './authenticator.ts';
import { OperatorSessions } from './operator-sessions.ts';
import { RateLimiter } from './rate-limiter.ts';

@Module({
  providers: [
    {
      provide: Authenticator,
      inject: [DATABASE, PolicyWatch, LOGGER],
      useFactory: ({ pool }: Database, watch: PolicyWatch, logger: Logger) =>
        new Authenticator({ pool, watch, onError: (err) => logger.warn({ err }, 'last_used_at was not written') }),
    },
    {
      provide: OperatorSessions,
      inject: [DATABASE, PolicyWatch, LOGGER],
      useFactory: ({ pool }: Database, watch: PolicyWatch, logger: Logger) =>
        new OperatorSessions({
          pool,
          watch,
          onError: (err) => logger.warn({ err }, 'a session’s use was not written'),
        }),
    },
    {
      provide: RateLimiter,
      inject: [CONFIG, DATABASE, LOGGER],
      useFactory: (config: Config, { pool }: Database, logger: Logger) => {
        const { RATE_LIMIT_PER_MINUTE: limit, RATE_LIMIT_STORE, QUEUE_NAME: name } = config;
        const shared = RATE_LIMIT_STORE === 'shared' ? { redisUrl: redisUrlOf(config), pool } : {};
        return new RateLimiter({ limit, name, logger, ...shared });
      },
    },
    { provide: AccessStore, inject: [DATABASE], useFactory: ({ pool }: Database) => new AccessStore(pool) },
  ],
  exports: [Authenticator, AccessStore, OperatorSessions, RateLimiter],
})
export class AccessModule implements OnApplicationShutdown {
  constructor(@Inject(RateLimiter) private readonly limiter: RateLimiter) {}

  onApplicationShutdown(): void {
    this.limiter.close();
  }
}
