import { Controller, Get, Inject, Res } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import { openApiDocument } from '#contract';
import { CONFIG, readinessCode, type Config } from '#platform';
import { BASE_PATH } from '../endpoint.ts';
import { HealthService } from '../health-service.ts';
import { Links } from '../links.ts';

/** What the service says of itself, without a token. */
@Controller()
export class ServiceController {
  private readonly document: string;

  constructor(
    @Inject(HealthService) private readonly health: HealthService,
    @Inject(Links) links: Links,
    @Inject(CONFIG) { COMPATIBILITY_FIELDS }: Config,
  ) {
    const compatibility = COMPATIBILITY_FIELDS === 'on';
    this.document = JSON.stringify(openApiDocument(links.baseUrl, { compatibility }));
  }

  @Get(`${BASE_PATH}/openapi.json`)
  readOpenApi(@Res() reply: FastifyReply): void {
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
