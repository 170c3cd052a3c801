import { Controller, Inject, Req, Res } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import { operations, type AgentAnswer, type ListThreadsAnswer } from '#contract';
import type { ApiRequest } from '../http/caller.ts';
import { BASE_PATH, Endpoint } from '../http/endpoint.ts';
import { sendAnswer } from '../idempotency.ts';
import { ThreadLists } from '../thread-lists.ts';
import { ThreadService } from '../thread-service.ts';

@Controller(BASE_PATH)
export class AgentsController {
  constructor(
    @Inject(ThreadService) private readonly threads: ThreadService,
    @Inject(ThreadLists) private readonly lists: ThreadLists,
  ) {}

  @Endpoint(operations.getAgent)
  getAgent(@Req() request: ApiRequest<typeof operations.getAgent>): Promise<AgentAnswer> {
    return this.threads.getAgent(request);
  }

  @Endpoint(operations.listThreads)
  listThreads(@Req() request: ApiRequest<typeof operations.listThreads>): Promise<ListThreadsAnswer> {
    return this.lists.ofAgent(request);
  }

  @Endpoint(operations.createThread)
  async createThread(
    @Req() request: ApiRequest<typeof operations.createThread>,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    sendAnswer(reply, await this.threads.createThread(request));
  }
}
