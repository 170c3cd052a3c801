import { Controller, Get, Inject, Param, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { DocsPage, type DocsFile } from '../docs-page.ts';
import { notFound } from '../http/http-errors.ts';

/** Where one can read and try the interface: beside `/api/v1`, without a token. */
@Controller('/api/docs')
export class DocsController {
  constructor(@Inject(DocsPage) private readonly page: DocsPage) {}

  @Get()
  readPage(@Req() request: FastifyRequest, @Res() reply: FastifyReply): Promise<void> {
    return this.send('index.html', request, reply);
  }

  @Get(':file')
  readFile(@Param('file') name: string, @Req() request: FastifyRequest, @Res() reply: FastifyReply): Promise<void> {
    return this.send(name, request, reply);
  }

  private async send(name: string, { headers }: FastifyRequest, reply: FastifyReply): Promise<void> {
    const file: DocsFile | null = await this.page.find(name);
    if (file === null) throw notFound('path');
    void reply.headers({ ...file.headers, ETag: file.etag, 'Cache-Control': 'no-cache' });
    // A tag is quoted and a hash: what has it anywhere in its list has it.
    const isKnown = String(headers['if-none-match'] ?? '').includes(file.etag);
    await (isKnown ? reply.code(304).send() : reply.type(file.type).send(file.bytes));
  }
}
