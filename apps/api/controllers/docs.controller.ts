import { Controller, Get, Res } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import { PAGE, PAGE_HEADERS, START } from '../docs-page.ts';

/** The page to read and try the API, beside `/api/v1`. It needs no token. */
@Controller('/api/docs')
export class DocsController {
  @Get()
  async readPage(@Res() reply: FastifyReply): Promise<void> {
    await reply.headers(PAGE_HEADERS).type('text/html; charset=utf-8').send(PAGE);
  }

  @Get('start.js')
  async readScript(@Res() reply: FastifyReply): Promise<void> {
    await reply.headers(PAGE_HEADERS).type('application/javascript; charset=utf-8').send(START);
  }
}
