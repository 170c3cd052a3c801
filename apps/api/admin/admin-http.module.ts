import {
  Inject,
  Module,
  type BeforeApplicationShutdown,
  type OnApplicationBootstrap,
  type OnModuleInit,
} from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import type { FastifyInstance } from 'fastify';
import { ADMIN_HANDLERS, AdminModule, BulkRunner, type AdminHandlers } from '#admin';
import { BlobKeeper, FilesModule, FileStore } from '#files';
import { CONFIG, LOGGER, type Config, type Logger } from '#platform';
import { ApiAccessModule } from '../api-access.module.ts';
import { Callers } from '../http/callers.ts';
import { FileSender } from '../files/download.ts';
import { AdminRoutes } from './admin-routes.ts';
import { OpenAnswers } from './open-answers.ts';

/** The admin API. Needs the request hooks of ApiModule. */
@Module({
  imports: [ApiAccessModule, AdminModule, FilesModule],
  providers: [
    {
      provide: FileSender,
      inject: [FileStore, BlobKeeper, CONFIG],
      useFactory: (files: FileStore, blobs: BlobKeeper, { DOWNLOAD_STALL_MS }: Config) =>
        new FileSender(files, blobs, DOWNLOAD_STALL_MS),
    },
  ],
  exports: [FileSender],
})
export class AdminHttpModule implements OnModuleInit, OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly routes: AdminRoutes;
  readonly open: OpenAnswers;
  private readonly fastify: FastifyInstance;

  constructor(
    @Inject(HttpAdapterHost) { httpAdapter }: HttpAdapterHost,
    @Inject(ADMIN_HANDLERS) handlers: AdminHandlers,
    @Inject(Callers) callers: Callers,
    @Inject(FileSender) sender: FileSender,
    @Inject(BulkRunner) private readonly bulk: BulkRunner,
    @Inject(LOGGER) logger: Logger,
  ) {
    this.fastify = httpAdapter.getInstance<FastifyInstance>();
    this.open = new OpenAnswers(callers);
    this.routes = new AdminRoutes(handlers, this.open, sender, logger);
  }

  onModuleInit(): void {
    this.routes.install(this.fastify);
  }

  onApplicationBootstrap(): void {
    this.bulk.start();
  }

  /** Ends long answers, so that their readers reconnect to another process. */
  beforeApplicationShutdown(): void {
    this.open.stop();
  }
}
