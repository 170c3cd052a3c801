import { Controller, Get, Inject, Param, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { FileLinkService, LINK_PATH } from '../files/file-links.ts';

/** The addresses of file links, which are not in the Agent Threads API. */
@Controller()
export class FileLinksController {
  constructor(@Inject(FileLinkService) private readonly links: FileLinkService) {}

  @Get(`${LINK_PATH}/:link`)
  send(@Param('link') link: string, @Req() request: FastifyRequest, @Res() reply: FastifyReply): Promise<void> {
    return this.links.send(link, request, reply);
  }
}
