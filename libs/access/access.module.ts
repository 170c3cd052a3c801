import { Inject, Module, type BeforeApplicationShutdown, type OnApplicationShutdown } from '@nestjs/common';
import {
  CONFIG,
  DATABASE,
  LOGGER,
  parseSigningKeys,
  PolicyWatch,
  redisUrlOf,
  type Config,
  type Database,
  type Logger,
} from '#platform';
import { AccessStore } from './access-store.ts';
import { registerApiProcess, type ApiProcesses } from './api-processes.ts';
import { Authenticator } from './authenticator.ts';
import { BrowserTokens } from './browser-tokens.ts';
import { FileLinks } from './file-links.ts';
import { OperatorSessions } from './operator-sessions.ts';
import { RateLimiter } from './rate-limiter.ts';
import { SignedTokens } from './signed-tokens.ts';

/** Null if each process counts requests alone. */
const API_PROCESSES = Symbol('API_PROCESSES');

@Module({
  providers: [
    {
      provide: SignedTokens,
      inject: [CONFIG],
      useFactory: ({ BROWSER_TOKEN_KEYS }: Config) => new SignedTokens(parseSigningKeys(BROWSER_TOKEN_KEYS)),
    },
    {
      provide: BrowserTokens,
      inject: [SignedTokens],
      useFactory: (signed: SignedTokens) => new BrowserTokens(signed),
    },
    { provide: FileLinks, inject: [SignedTokens], useFactory: (signed: SignedTokens) => new FileLinks(signed) },
    {
      provide: Authenticator,
      inject: [DATABASE, PolicyWatch, CONFIG, BrowserTokens, OperatorSessions, LOGGER],
      useFactory: (
        { pool }: Database,
        watch: PolicyWatch,
        settings: Config,
        browserTokens: BrowserTokens,
        sessions: OperatorSessions,
        logger: Logger,
      ) =>
        new Authenticator({
          pool,
          watch,
          settings,
          browserTokens,
          sessions,
          onError: (err) => logger.warn({ err }, 'token last_used_at not written'),
        }),
    },
    {
      provide: OperatorSessions,
      inject: [DATABASE, PolicyWatch, CONFIG, LOGGER],
      useFactory: ({ pool }: Database, watch: PolicyWatch, settings: Config, logger: Logger) =>
        new OperatorSessions({
          pool,
          watch,
          settings,
          onError: (err) => logger.warn({ err }, 'session use not written'),
        }),
    },
    {
      provide: RateLimiter,
      inject: [CONFIG, DATABASE, LOGGER, API_PROCESSES],
      useFactory: (config: Config, { pool }: Database, logger: Logger, processes: ApiProcesses | null) => {
        // The limit of requests without a token. Each token has its own limit.
        const { RATE_LIMIT_PER_PERSON_TOKEN: limit, QUEUE_NAME: name } = config;
        const shared = processes && { redisUrl: redisUrlOf(config), pool, processes: () => processes.count() };
        return new RateLimiter({ limit, name, logger, ...shared });
      },
    },
    {
      provide: API_PROCESSES,
      inject: [CONFIG, DATABASE, LOGGER],
      useFactory: ({ RATE_LIMIT_STORE }: Config, { pool }: Database, logger: Logger) =>
        RATE_LIMIT_STORE === 'shared' ? registerApiProcess(pool, logger) : null,
    },
    { provide: AccessStore, inject: [DATABASE], useFactory: ({ pool }: Database) => new AccessStore(pool) },
  ],
  exports: [Authenticator, BrowserTokens, FileLinks, AccessStore, OperatorSessions, RateLimiter],
})
export class AccessModule implements BeforeApplicationShutdown, OnApplicationShutdown {
  constructor(
    @Inject(RateLimiter) private readonly limiter: RateLimiter,
    @Inject(API_PROCESSES) private readonly processes: ApiProcesses | null,
  ) {}

  async beforeApplicationShutdown(): Promise<void> {
    await this.processes?.close();
  }

  onApplicationShutdown(): void {
    this.limiter.close();
  }
}
