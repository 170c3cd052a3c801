import { Controller, Inject, Req, Res } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import {
  operations,
  type ListEventsAnswer,
  type ListMessagesAnswer,
  type ListRunsAnswer,
  type ListThreadsAnswer,
  type OkAnswer,
  type RunAnswer,
  type ThreadAnswer,
} from '#contract';
import type { ApiRequest } from '../http/caller.ts';
import { BASE_PATH, Endpoint } from '../http/endpoint.ts';
import { EventService } from '../event-service.ts';
import { sendAnswer } from '../idempotency.ts';
import { RunService } from '../run-service.ts';
import { ThreadLists } from '../thread-lists.ts';
import { ThreadService } from '../thread-service.ts';

@Controller(BASE_PATH)
export class ThreadsController {
  constructor(
    @Inject(ThreadService) private readonly threads: ThreadService,
    @Inject(ThreadLists) private readonly lists: ThreadLists,
    @Inject(EventService) private readonly events: EventService,
    @Inject(RunService) private readonly runs: RunService,
  ) {}

  @Endpoint(operations.listAllThreads)
  listThreads(@Req() request: ApiRequest<typeof operations.listAllThreads>): Promise<ListThreadsAnswer> {
    return this.lists.ofAllAgents(request);
  }

  @Endpoint(operations.getThread)
  getThread(@Req() request: ApiRequest<typeof operations.getThread>): Promise<ThreadAnswer> {
    return this.threads.getThread(request);
  }

  @Endpoint(operations.updateThread)
  updateThread(@Req() request: ApiRequest<typeof operations.updateThread>): Promise<ThreadAnswer> {
    return this.threads.updateThread(request);
  }

  @Endpoint(operations.deleteThread)
  deleteThread(@Req() request: ApiRequest<typeof operations.deleteThread>): Promise<OkAnswer> {
    return this.threads.deleteThread(request);
  }

  @Endpoint(operations.archiveThread)
  archiveThread(@Req() request: ApiRequest<typeof operations.archiveThread>): Promise<OkAnswer> {
    return this.threads.setArchived(request, 'archive');
  }

  @Endpoint(operations.unarchiveThread)
  unarchiveThread(@Req() request: ApiRequest<typeof operations.unarchiveThread>): Promise<OkAnswer> {
    return this.threads.setArchived(request, 'unarchive');
  }

  @Endpoint(operations.sendEvents)
  async sendEvents(
    @Req() request: ApiRequest<typeof operations.sendEvents>,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    sendAnswer(reply, await this.events.sendEvents(request));
  }

  @Endpoint(operations.listEvents)
  listEvents(@Req() request: ApiRequest<typeof operations.listEvents>): Promise<ListEventsAnswer> {
    return this.events.listEvents(request);
  }

  @Endpoint(operations.listMessages)
  listMessages(@Req() request: ApiRequest<typeof operations.listMessages>): Promise<ListMessagesAnswer> {
    return this.events.listMessages(request);
  }

  @Endpoint(operations.listRuns)
  listRuns(@Req() request: ApiRequest<typeof operations.listRuns>): Promise<ListRunsAnswer> {
    return this.runs.listRuns(request);
  }

  @Endpoint(operations.retryRun)
  async retryRun(@Req() request: ApiRequest<typeof operations.retryRun>, @Res() reply: FastifyReply): Promise<void> {
    sendAnswer(reply, await this.runs.retryRun(request));
  }

  @Endpoint(operations.getRun)
  getRun(@Req() request: ApiRequest<typeof operations.getRun>): Promise<RunAnswer> {
    return this.runs.getRun(request);
  }
}
