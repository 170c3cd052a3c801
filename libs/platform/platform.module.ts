import { Inject, Module, type DynamicModule, type OnApplicationShutdown } from '@nestjs/common';
import { requireDatabaseUrl, type Config } from './config.ts';
import { openDatabase, type Database } from './database.ts';
import type { Logger } from './logger.ts';

/** Injection tokens of what every part may need. */
export const CONFIG = Symbol('CONFIG');
export const DATABASE = Symbol('DATABASE');
export const LOGGER = Symbol('LOGGER');

/** Configuration, log and database of one process; the root of every composition. */
@Module({})
export class PlatformModule implements OnApplicationShutdown {
  constructor(@Inject(DATABASE) private readonly database: Database) {}

  static forRoot(config: Config, logger: Logger): DynamicModule {
    const database = {
      provide: DATABASE,
      useFactory: () =>
        openDatabase({
          url: requireDatabaseUrl(config),
          applicationName: String(logger.bindings()['name'] ?? 'spool'),
          maxConnections: config.DATABASE_POOL_SIZE,
          onError: (error) => logger.warn({ err: error }, 'an idle database connection broke'),
        }),
    };
    const providers = [{ provide: CONFIG, useValue: config }, { provide: LOGGER, useValue: logger }, database];
    return { module: PlatformModule, global: true, providers, exports: [CONFIG, LOGGER, DATABASE] };
  }

  async onApplicationShutdown(): Promise<void> {
    await this.database.close();
  }
}
