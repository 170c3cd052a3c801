import type { AgentCatalogue } from '#agents';
import { ownerFor } from '#access';
import {
  decodePlace,
  encodePlace,
  operations,
  type AgentAnswer,
  type ListThreadsAnswer,
  type OkAnswer,
  type ThreadAnswer,
} from '#contract';
import { isRejection, type Command } from '#domain';
import { absentThread, type CommandHandler, type Handled } from '#event-store';
import type { BlobKeeper } from '#files';
import { newId } from '#platform';
import type { Attribution } from './attribution.ts';
import type { ApiRequest } from './caller.ts';
import { idsOf, type Drafts } from './files/drafts.ts';
import { busyNow, notFound, rejectionError } from './http-errors.ts';
import type { Answer, Idempotency } from './idempotency.ts';
import type { Links } from './links.ts';
import { addMessage, requirePlan } from './new-runs.ts';
import type { SummaryReader } from './queries/summary-reader.ts';
import { renderAgent, renderRun, renderThread, type Rendering } from './render.ts';
import type { AccessGuard } from './access-guard.ts';

/** Agents and their Threads. */
export class ThreadService {
  constructor(
    private readonly access: AccessGuard,
    private readonly agents: AgentCatalogue,
    private readonly handler: CommandHandler,
    private readonly summaries: SummaryReader,
    private readonly drafts: Drafts,
    private readonly blobs: BlobKeeper,
    private readonly idempotency: Idempotency,
    private readonly links: Links,
    private readonly attribution: Attribution,
    private readonly settings: Rendering,
  ) {}

  async getAgent({ caller, input }: ApiRequest<typeof operations.getAgent>): Promise<AgentAnswer> {
    return { agent: renderAgent(await this.access.findUsableAgent(caller, input.params.agentId)) };
  }

  async getThread(request: ApiRequest<typeof operations.getThread>): Promise<ThreadAnswer> {
    const { thread, run } = await this.access.findVisibleThread(request.caller, request.input.params.threadId);
    return {
      thread: renderThread(thread, this.settings),
      run: run && renderRun(run),
      links: this.links.ofThread(request, thread.thread_id),
    };
  }

  async listThreads({ caller, input }: ApiRequest<typeof operations.listThreads>): Promise<ListThreadsAnswer> {
    const { limit, cursor, archived, status = null, userId = null } = input.query;
    const { id: agentId } = await this.access.findUsableAgent(caller, input.params.agentId);
    const after = cursor === undefined ? null : decodePlace(cursor);
    const { personId: owner_person_id, serviceTokenId: owner_service_token_id } = ownerFor(caller);
    // One more than asked for tells whether there is another page.
    const found = await this.summaries.listThreads({
      owner: { owner_person_id, owner_service_token_id },
      agentId,
      status,
      archived: archived === 'all' ? null : archived === 'true',
      userId,
      after,
      limit: limit + 1,
    });
    const page = found.slice(0, limit);
    const last = found.length > limit ? page.at(-1) : undefined;
    const nextCursor = last ? encodePlace({ updatedAt: last.updated_at, threadId: last.thread_id }) : null;
    return { threads: page.map((thread) => renderThread(thread, this.settings)), nextCursor };
  }

  async setArchived(
    { caller, input }: ApiRequest<typeof operations.archiveThread | typeof operations.unarchiveThread>,
    type: 'archive' | 'unarchive',
  ): Promise<OkAnswer> {
    const { threadId } = input.params;
    await this.access.findVisibleThread(caller, threadId);
    const outcome = await this.handler.handle({ threadId, commands: [{ type }] });
    if (isRejection(outcome)) throw rejectionError(outcome);
    if (outcome.outcome === 'conflict') throw busyNow('The Thread is changing too quickly.');
    return { ok: true };
  }

  async deleteThread({ caller, input }: ApiRequest<typeof operations.deleteThread>): Promise<OkAnswer> {
    const { threadId } = input.params;
    await this.access.findVisibleThread(caller, threadId);
    const blobKeys = await this.handler.deleteThread(threadId);
    if (blobKeys === null) throw notFound('Thread');
    await this.blobs.discard(blobKeys);
    return { ok: true };
  }

  /** One append, and for an agent that is known not a single read before it. */
  async createThread(request: ApiRequest<typeof operations.createThread>): Promise<Answer> {
    const { caller, input } = request;
    const agent = await this.access.findUsableAgent(caller, input.params.agentId);
    const { attributed_user_id: personId } = input.body;
    this.attribution.refuseUnlessAllowed(caller, personId);
    return this.idempotency.answerOnce(request, operations.createThread, {
      perform: async (answer) => {
        const { userId, input: message, client_external_ref: clientExternalRef } = input.body;
        const { id: agentId, organizationId, kind } = agent;
        const fileIds = idsOf(input.body.resources);
        const owner = await this.attribution.ownerOf(caller, personId);
        const files = this.drafts.claim(caller, agentId, fileIds);
        const commands: Command[] = [
          { type: 'create_thread', agentId, organizationId, kind, userId, owner, clientExternalRef },
        ];
        const threadId = newId();
        request.trail = { threadId };
        if (message !== undefined) {
          const text = message.content.map((part) => part.text).join('\n');
          const added = addMessage(await requirePlan(this.agents, agent), caller, { text, requestId: null, fileIds });
          request.trail.runId = added.run.runId;
          commands.push(added);
        } else {
          // At once, for the first Run to mount (decisions, section 7).
          commands.push(...fileIds.map((fileId): Command => ({ type: 'attach_file', fileId })));
        }
        const outcome = await this.handler.handle({ threadId, from: absentThread(threadId), commands, answer, files });
        return this.drafts.orRefuse(outcome, files);
      },
      render: ({ thread }) => this.renderCreated(request, thread),
    });
  }

  private renderCreated(request: ApiRequest, { threadId, summaries }: Handled['thread']): ThreadAnswer {
    const { thread, runs } = summaries;
    if (thread === null) throw new Error('A Thread was created without a summary.');
    const [run] = runs.values();
    const links = this.links.ofThread(request, threadId);
    return { thread: renderThread(thread, this.settings), run: run === undefined ? null : renderRun(run), links };
  }
}
