import { Inject, Module, type BeforeApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import type { FastifyInstance } from 'fastify';
import { AccessModule, Authenticator } from '#access';
import { ADMIN_HANDLERS, AdminModule, type AdminHandlers } from '#admin';
import { LOGGER, type Logger } from '#platform';
import { AdminRoutes } from './admin-routes.ts';
import { OpenAnswers } from './open-answers.ts';

/** The admin API; needs what ApiModule installs on each request. */
@Module({ imports: [AccessModule, AdminModule] })
export class AdminHttpModule implements OnModuleInit, BeforeApplicationShutdown {
  private readonly routes: AdminRoutes;
  readonly open: OpenAnswers;
  private readonly fastify: FastifyInstance;

  constructor(
    @Inject(HttpAdapterHost) { httpAdapter }: HttpAdapterHost,
    @Inject(ADMIN_HANDLERS) handlers: AdminHandlers,
    @Inject(Authenticator) authenticator: Authenticator,
    @Inject(LOGGER) logger: Logger,
  ) {
    this.fastify = httpAdapter.getInstance<FastifyInstance>();
    this.open = new OpenAnswers(authenticator);
    this.routes = new AdminRoutes(handlers, this.open, logger);
  }

  onModuleInit(): void {
    this.routes.install(this.fastify);
  }

  /** Long answers end, so that whoever reads them asks another process. */
  beforeApplicationShutdown(): void {
    this.open.stop();
  }
}
