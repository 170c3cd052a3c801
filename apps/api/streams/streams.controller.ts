import { Controller, Inject, Req, Res } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import { operations } from '#contract';
import type { ApiRequest } from '../http/caller.ts';
import { BASE_PATH, Endpoint } from '../http/endpoint.ts';
import { StreamService } from './stream-service.ts';

@Controller(BASE_PATH)
export class StreamsController {
  constructor(@Inject(StreamService) private readonly streams: StreamService) {}

  @Endpoint(operations.streamEvents)
  streamEvents(@Req() request: ApiRequest<typeof operations.streamEvents>, @Res() reply: FastifyReply): Promise<void> {
    return this.streams.openStream(request, reply);
  }
}
