import { Inject, Module, type DynamicModule, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import type { Config } from './process/config.ts';
import { openDatabase, type Database } from './postgres/database.ts';
import { requireDatabaseUrl } from './process/load-config.ts';
import type { Logger } from './telemetry/logger.ts';
import { metrics, onScrape } from './telemetry/metrics.ts';
import { openPolicyVersions } from './policy/policy-versions.ts';
import { PolicyWatch } from './policy/policy-watch.ts';

/** Injection tokens that every package may need. */
export const CONFIG = Symbol('CONFIG');
export const DATABASE = Symbol('DATABASE');
export const LOGGER = Symbol('LOGGER');

/** Configuration, log, database and policy watch of one process; the root of every composition. */
@Module({})
export class PlatformModule implements OnModuleInit, OnApplicationShutdown {
  private endTelling = (): void => undefined;

  constructor(
    @Inject(DATABASE) private readonly database: Database,
    @Inject(PolicyWatch) private readonly policy: PolicyWatch,
  ) {}

  static forRoot(config: Config, logger: Logger): DynamicModule {
    const database = {
      provide: DATABASE,
      useFactory: () =>
        openDatabase({
          url: requireDatabaseUrl(config),
          applicationName: String(logger.bindings()['name'] ?? 'spool'),
          maxConnections: config.DATABASE_POOL_SIZE,
          onError: (error) => logger.warn({ err: error }, 'idle database connection lost'),
        }),
    };
    const policy = {
      provide: PolicyWatch,
      useFactory: () =>
        new PolicyWatch({
          versions: openPolicyVersions(requireDatabaseUrl(config)),
          onError: (err) => logger.warn({ err }, 'policy watch failed; every request reads the database'),
        }),
    };
    const providers = [{ provide: CONFIG, useValue: config }, { provide: LOGGER, useValue: logger }, database, policy];
    return { module: PlatformModule, global: true, providers, exports: [CONFIG, LOGGER, DATABASE, PolicyWatch] };
  }

  onModuleInit(): void {
    this.policy.start();
    const { pool } = this.database;
    this.endTelling = onScrape(() => {
      metrics.databaseConnections.set({ state: 'total' }, pool.totalCount);
      metrics.databaseConnections.set({ state: 'idle' }, pool.idleCount);
      metrics.databaseConnections.set({ state: 'waiting' }, pool.waitingCount);
    });
  }

  async onApplicationShutdown(): Promise<void> {
    this.endTelling();
    await this.policy.stop();
    await this.database.close();
  }
}
