import { Module } from '@nestjs/common';
import { DATABASE, LOGGER, type Database, type Logger } from '#platform';
import { AccessStore } from './access-store.ts';
import { Authenticator } from './authenticator.ts';

@Module({
  providers: [
    {
      provide: Authenticator,
      inject: [DATABASE, LOGGER],
      useFactory: ({ pool }: Database, logger: Logger) =>
        new Authenticator({ pool, onError: (err) => logger.warn({ err }, 'last_used_at was not written') }),
    },
    { provide: AccessStore, inject: [DATABASE], useFactory: ({ pool }: Database) => new AccessStore(pool) },
  ],
  exports: [Authenticator, AccessStore],
})
export class AccessModule {}
