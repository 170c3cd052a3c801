import { Inject, Module, type DynamicModule, type OnModuleDestroy, type OnModuleInit } from '@nestjs/common';
import { APP_FILTER, HttpAdapterHost } from '@nestjs/core';
import type { FastifyInstance } from 'fastify';
import { Authenticator, BrowserTokens, FileLinks, RateLimiter } from '#access';
import { AgentCatalogue } from '#agents';
import { EventStoreModule, ThreadStore } from '#event-store';
import { BlobKeeper, FileStore } from '#files';
import {
  CONFIG,
  DATABASE,
  isTracing,
  LOGGER,
  PlatformModule,
  type Config,
  type Database,
  type Logger,
} from '#platform';
import { RunQueueModule } from '#run-queue';
import { TaskPool, TaskPoolModule } from '#task-pool';
import { ThreadReader, Threads, ThreadsModule } from '#threads';
import { AdminHttpModule } from './admin/admin-http.module.ts';
import { ApiAccessModule } from './api-access.module.ts';
import { Attribution } from './attribution.ts';
import { BodyIntake } from './bodies/body-intake.ts';
import { BrowserTokenService } from './browser-token-service.ts';
import { Callers } from './http/callers.ts';
import { installCors } from './http/cors.ts';
import { installCompression } from './http/compress-answers.ts';
import { ConsoleModule } from './console/console.module.ts';
import { AgentsController } from './controllers/agents.controller.ts';
import { BrowserTokensController } from './controllers/browser-tokens.controller.ts';
import { DocsController } from './controllers/docs.controller.ts';
import { FileLinksController } from './controllers/file-links.controller.ts';
import { FilesController } from './controllers/files.controller.ts';
import { ServiceController } from './controllers/service.controller.ts';
import { ThreadsController } from './controllers/threads.controller.ts';
import { SWAGGER_UI } from './docs-page.ts';
import { ErrorFilter } from './http/error-filter.ts';
import { EventService } from './event-service.ts';
import { Extensions } from './extensions.ts';
import { DownloadService, FileSender } from './files/download.ts';
import { FileLinkService } from './files/file-links.ts';
import { FileService } from './files/file-service.ts';
import { HealthService } from './health-service.ts';
import { Idempotency } from './idempotency.ts';
import { installLargeAnswers } from './http/large-answers.ts';
import { Links } from './links.ts';
import { SummaryReader } from './queries/summary-reader.ts';
import { ObservationModule } from './observation.module.ts';
import { installRequestChecks } from './http/request-checks.ts';
import { serveFiles } from './http/static-files.ts';
import { installRequestTraces } from './http/request-traces.ts';
import { RunService } from './run-service.ts';
import { StreamsModule } from './streams/streams.module.ts';
import { ThreadLists } from './thread-lists.ts';
import { ThreadService } from './thread-service.ts';
import { AccessGuard } from './access-guard.ts';
import { UnusedConnections } from './http/unused-connections.ts';

const services = [
  { provide: Links, inject: [CONFIG], useFactory: ({ PUBLIC_BASE_URL }: Config) => new Links(PUBLIC_BASE_URL) },
  {
    provide: Idempotency,
    inject: [ThreadStore, AccessGuard, Extensions],
    useFactory: (...parts: ConstructorParameters<typeof Idempotency>) => new Idempotency(...parts),
  },
  { provide: Extensions, inject: [DATABASE], useFactory: ({ pool }: Database) => new Extensions(pool) },
  {
    provide: ThreadLists,
    inject: [AccessGuard, AgentCatalogue, SummaryReader, Extensions, CONFIG],
    useFactory: (...parts: ConstructorParameters<typeof ThreadLists>) => new ThreadLists(...parts),
  },
  { provide: Attribution, inject: [DATABASE], useFactory: ({ pool }: Database) => new Attribution(pool) },
  {
    provide: ThreadService,
    inject: [AccessGuard, Threads, ThreadStore, Idempotency, Links, Attribution, Extensions, CONFIG],
    useFactory: (...parts: ConstructorParameters<typeof ThreadService>) => new ThreadService(...parts),
  },
  {
    provide: BrowserTokenService,
    inject: [AccessGuard, BrowserTokens],
    useFactory: (...parts: ConstructorParameters<typeof BrowserTokenService>) => new BrowserTokenService(...parts),
  },
  {
    provide: EventService,
    inject: [AccessGuard, Threads, ThreadStore, Idempotency, CONFIG],
    useFactory: (...parts: ConstructorParameters<typeof EventService>) => new EventService(...parts),
  },
  {
    provide: RunService,
    inject: [AccessGuard, Threads, ThreadReader, SummaryReader, Idempotency, Extensions],
    useFactory: (...parts: ConstructorParameters<typeof RunService>) => new RunService(...parts),
  },
  {
    provide: FileService,
    inject: [AccessGuard, Threads, FileStore, BlobKeeper, Idempotency, CONFIG],
    useFactory: (
      access: AccessGuard,
      threads: Threads,
      files: FileStore,
      blobs: BlobKeeper,
      idempotency: Idempotency,
      settings: Config,
    ) => new FileService({ access, threads, files, blobs, idempotency, settings }),
  },
  {
    provide: FileLinkService,
    inject: [AccessGuard, Authenticator, FileLinks, RateLimiter, Links, FileSender],
    useFactory: (
      access: AccessGuard,
      authenticator: Authenticator,
      fileLinks: FileLinks,
      limiter: RateLimiter,
      links: Links,
      sender: FileSender,
    ) => new FileLinkService({ access, authenticator, fileLinks, limiter, links, sender }),
  },
  {
    provide: DownloadService,
    inject: [AccessGuard, FileSender],
    useFactory: (access: AccessGuard, sender: FileSender) => new DownloadService(access, sender),
  },
];

/** How often idle connections are closed during shutdown. Milliseconds. */
const IDLE_CHECK_MS = 50;

/** The HTTP API of one process. Needs the adapter of `createHttpAdapter`, and PlatformModule. */
@Module({
  imports: [
    AdminHttpModule,
    ApiAccessModule,
    ConsoleModule,
    EventStoreModule,
    ObservationModule,
    RunQueueModule,
    StreamsModule,
    TaskPoolModule,
    ThreadsModule,
  ],
  controllers: [
    AgentsController,
    ThreadsController,
    FilesController,
    FileLinksController,
    BrowserTokensController,
    ServiceController,
    DocsController,
  ],
  providers: [...services, { provide: APP_FILTER, useClass: ErrorFilter }],
})
export class ApiModule implements OnModuleInit, OnModuleDestroy {
  private readonly fastify: FastifyInstance;
  private readonly unused: UnusedConnections;

  constructor(
    @Inject(HttpAdapterHost) adapterHost: HttpAdapterHost,
    @Inject(Callers) private readonly callers: Callers,
    @Inject(RateLimiter) private readonly limiter: RateLimiter,
    @Inject(HealthService) private readonly health: HealthService,
    @Inject(TaskPool) private readonly pool: TaskPool,
    @Inject(CONFIG) private readonly config: Config,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {
    this.fastify = adapterHost.httpAdapter.getInstance<FastifyInstance>();
    this.unused = new UnusedConnections(this.fastify.server);
  }

  /** Returns the module of a separate API process. The standalone provides the platform itself. */
  static forRoot(config: Config, logger: Logger): DynamicModule {
    return { module: ApiModule, imports: [PlatformModule.forRoot(config, logger)] };
  }

  onModuleInit(): void {
    const { callers, limiter, health } = this;
    this.fastify.addHook('onSend', ({ routeOptions: { config } }, reply, payload, done) => {
      if (config.isPrivate && !reply.hasHeader('Cache-Control')) void reply.header('Cache-Control', 'no-store');
      // Makes clients and load balancers open their next connection to another process.
      if (health.stopping) void reply.header('Connection', 'close');
      done(null, payload);
    });
    if (isTracing()) installRequestTraces(this.fastify);
    const compatibility = this.config.COMPATIBILITY_FIELDS === 'on';
    installLargeAnswers(this.fastify);
    installCompression(this.fastify);
    const bodies = new BodyIntake(this.config, this.pool);
    // Before the checks, which may refuse the request.
    installCors(this.fastify).after(() =>
      installRequestChecks(this.fastify, { callers, limiter, compatibility, bodies }),
    );
    serveFiles(this.fastify, this.logger, SWAGGER_UI);
  }

  /** Closes the port first at shutdown, because an ended stream must not reconnect to this process. */
  onModuleDestroy(): void {
    const { server } = this.fastify;
    if (!server.listening) return;
    server.close();
    this.unused.end();
    // `close` closes only connections that are idle now. The others would stay open after their answer, for the keep-alive time.
    const closing = setInterval(() => server.closeIdleConnections(), IDLE_CHECK_MS).unref();
    server.once('close', () => clearInterval(closing));
  }
}
