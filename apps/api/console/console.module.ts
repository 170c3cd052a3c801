import { Inject, Module, type OnModuleInit } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import type { Queue } from 'bullmq';
import type { FastifyInstance } from 'fastify';
import { Authenticator, OperatorSessions, RateLimiter } from '#access';
import { QueueControls, RunQueueModule, SHOWN_QUEUE } from '#run-queue';
import { CONFIG, DATABASE, LOGGER, type Config, type Database, type Logger } from '#platform';
import { ApiAccessModule } from '../api-access.module.ts';
import { Callers } from '../http/callers.ts';
import { BoardRoutes } from './board-routes.ts';
import { CONSOLE_FOLDER, PageRoutes } from './page-routes.ts';
import { SessionRoutes } from './session-routes.ts';
import { StartPage } from './start-page.ts';

/** The start page, the console, the chat and the sign-in of operators. Needs the request hooks of ApiModule. */
@Module({
  imports: [ApiAccessModule, RunQueueModule],
  providers: [
    {
      provide: StartPage,
      inject: [LOGGER, CONFIG],
      useFactory: (logger: Logger, { CHAT_PAGE }: Config) => new StartPage(logger, CHAT_PAGE === 'on'),
    },
  ],
})
export class ConsoleModule implements OnModuleInit {
  private readonly routes: { install(fastify: FastifyInstance): void }[];

  constructor(
    @Inject(HttpAdapterHost) private readonly host: HttpAdapterHost,
    @Inject(DATABASE) { pool }: Database,
    @Inject(Authenticator) authenticator: Authenticator,
    @Inject(OperatorSessions) sessions: OperatorSessions,
    @Inject(Callers) callers: Callers,
    @Inject(RateLimiter) limiter: RateLimiter,
    @Inject(SHOWN_QUEUE) queue: Queue,
    @Inject(QueueControls) controls: QueueControls,
    @Inject(LOGGER) logger: Logger,
    @Inject(StartPage) startPage: StartPage,
    @Inject(CONFIG) { CHAT_PAGE }: Config,
  ) {
    this.routes = [
      new SessionRoutes({ pool, authenticator, sessions, callers, limiter, logger }),
      new BoardRoutes({ queue, controls, callers, limiter, logger }),
      new PageRoutes(CONSOLE_FOLDER, logger, CHAT_PAGE === 'on'),
      startPage,
    ];
  }

  onModuleInit(): void {
    const fastify = this.host.httpAdapter.getInstance<FastifyInstance>();
    for (const routes of this.routes) routes.install(fastify);
  }
}
