import { Controller, Get, Inject, Res } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import { openApiDocument } from '#contract';
import { CONFIG, readinessCode, type Config } from '#platform';
import { BASE_PATH } from '../http/endpoint.ts';
import { HealthService } from '../health-service.ts';
import { Links } from '../links.ts';

/** The OpenAPI document and the health of the service, without a token. */
@Controller()
export class ServiceController {
  private document: string | undefined;

  constructor(
    @Inject(HealthService) private readonly health: HealthService,
    @Inject(Links) private readonly links: Links,
    @Inject(CONFIG) private readonly config: Config,
  ) {}

  @Get(`${BASE_PATH}/openapi.json`)
  readOpenApi(@Res() reply: FastifyReply): void {
    // Built at the first request, so that it does not slow down the start.
    this.document ??= JSON.stringify(
      openApiDocument(this.links.baseUrl, { compatibility: this.config.COMPATIBILITY_FIELDS === 'on' }),
    );
    void reply.type('application/json; charset=utf-8').send(this.document);
  }

  @Get('health/live')
  checkLive(): { status: 'ok' } {
    return { status: 'ok' };
  }

  @Get('health/ready')
  async checkReady(@Res() reply: FastifyReply): Promise<void> {
    const health = await this.health.check();
    void reply.code(readinessCode(health)).send(health);
  }
}
