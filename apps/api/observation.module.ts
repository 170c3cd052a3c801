import { Inject, Module, type OnModuleDestroy, type OnModuleInit } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { AccessModule, RateLimiter } from '#access';
import type { AdminOperation } from '#contract';
import { LIVE_BUS, LiveModule, type LiveBus } from '#live';
import { DATABASE, LOGGER, onScrape, PolicyWatch, scrape, type Database, type Logger } from '#platform';
import { QueueControls, RUN_QUEUE, RunQueueModule, reportInstallation, type RunQueue } from '#run-queue';
import { sendError } from './http/error-filter.ts';
import { HealthService } from './health-service.ts';

/** The operation of `/metrics`. It has the checks of the admin API, but returns the text format of Prometheus. */
const SCRAPE: AdminOperation = {
  method: 'GET',
  path: '/metrics',
  summary: 'Metrics of this process and of the installation',
  description: 'In the text format of Prometheus.',
  params: z.object({}),
  query: z.object({}),
  body: null,
  status: 200,
  answer: z.string(),
  form: 'bytes',
};

/** Provides the health of the API, and `/metrics` for operators. */
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
export class ObservationModule implements OnModuleInit, OnModuleDestroy {
  private readonly fastify: FastifyInstance;
  private ends: (() => void)[] = [];

  constructor(
    @Inject(HttpAdapterHost) { httpAdapter }: HttpAdapterHost,
    @Inject(HealthService) private readonly health: HealthService,
    @Inject(DATABASE) private readonly database: Database,
    @Inject(RUN_QUEUE) private readonly queue: RunQueue,
    @Inject(QueueControls) private readonly controls: QueueControls,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {
    this.fastify = httpAdapter.getInstance<FastifyInstance>();
  }

  onModuleInit(): void {
    const { health, queue, controls } = this;
    const { pool } = this.database;
    this.ends = [onScrape(async () => void (await health.check())), reportInstallation({ pool, queue, controls })];
    this.fastify.route({
      method: SCRAPE.method,
      url: SCRAPE.path,
      config: { adminOperation: SCRAPE, isPrivate: true },
      errorHandler: (error: unknown, request: FastifyRequest, reply: FastifyReply) =>
        sendError(this.logger, request, reply, error),
      handler: async (_request, reply) => {
        const { contentType, text } = await scrape();
        return reply.header('Content-Type', contentType).send(text);
      },
    });
  }

  onModuleDestroy(): void {
    this.ends.forEach((end) => end());
  }
}
