import { uploaderFor } from '#access';
import type { Agent } from '#agents';
import { operations, type AgentAnswer, type OkAnswer, type ThreadAnswer } from '#contract';
import type { Answered, Handled, ThreadAndRun, ThreadStore } from '#event-store';
import { newId } from '#platform';
import type { NewThread, Threads } from '#threads';
import type { Attribution } from './attribution.ts';
import { requireUser } from './http/browser-rights.ts';
import { callerId, type ApiRequest } from './http/caller.ts';
import type { Extensions } from './extensions.ts';
import { notFound } from './http/http-errors.ts';
import { answerOf, requestKey, type Answer, type Idempotency, type RequestKey } from './idempotency.ts';
import type { Links } from './links.ts';
import { renderAgent, renderRun, renderThread, type Rendering } from './render.ts';
import type { AccessGuard } from './access-guard.ts';

/** The operations on Agents and their Threads. */
export class ThreadService {
  constructor(
    private readonly access: AccessGuard,
    private readonly threads: Threads,
    private readonly store: ThreadStore,
    private readonly idempotency: Idempotency,
    private readonly links: Links,
    private readonly attribution: Attribution,
    private readonly extensions: Extensions,
    private readonly settings: Rendering,
  ) {}

  async getAgent({ caller, input }: ApiRequest<typeof operations.getAgent>): Promise<AgentAnswer> {
    return { agent: renderAgent(await this.access.findUsableAgent(caller, input.params.agentId)) };
  }

  async getThread(request: ApiRequest<typeof operations.getThread>): Promise<ThreadAnswer> {
    const { caller, input } = request;
    const wanted = { withRun: true };
    return this.renderRead(request, await this.access.findVisibleThread(caller, input.params.threadId, wanted));
  }

  private renderRead(request: ApiRequest, { thread, run }: ThreadAndRun): Promise<ThreadAnswer> {
    return this.extensions.extend(request, {
      thread: renderThread(thread, this.settings),
      run: run && renderRun(run),
      links: this.links.ofThread(request, thread.thread_id),
    });
  }

  /** Sets the title. Null restores the title of the first message. */
  async updateThread(request: ApiRequest<typeof operations.updateThread>): Promise<ThreadAnswer> {
    const { threadId } = request.input.params;
    const { thread } = await this.access.findVisibleThread(request.caller, threadId);
    const isSet = await this.threads.setTitle(thread, request.input.body.title);
    if (!isSet) return this.updateThread(request);
    const changed = await this.store.findThread(threadId, { withRun: true });
    if (changed === null) throw notFound('Thread');
    return this.renderRead(request, changed);
  }

  async setArchived(
    { caller, input }: ApiRequest<typeof operations.archiveThread | typeof operations.unarchiveThread>,
    type: 'archive' | 'unarchive',
  ): Promise<OkAnswer> {
    const { threadId } = input.params;
    await this.access.findVisibleThread(caller, threadId);
    await this.threads.change(threadId, [{ type }]);
    return { ok: true };
  }

  async deleteThread({ caller, input }: ApiRequest<typeof operations.deleteThread>): Promise<OkAnswer> {
    const { threadId } = input.params;
    await this.access.requireDeletableThread(caller, threadId);
    if (!(await this.threads.delete(threadId))) throw notFound('Thread');
    return { ok: true };
  }

  async createThread(request: ApiRequest<typeof operations.createThread>): Promise<Answer> {
    const { caller, input } = request;
    requireUser(caller, input.body.userId);
    const agent = await this.access.findUsableAgent(caller, input.params.agentId);
    this.attribution.refuseUnlessAllowed(caller, input.body.attributed_user_id);
    const key = await requestKey(request, operations.createThread, input.body);
    return this.idempotency.settle(request, key, this.create(request, agent, key));
  }

  private async create(
    request: ApiRequest<typeof operations.createThread>,
    agent: Agent,
    key: RequestKey,
  ): Promise<Answered> {
    const { caller, input } = request;
    const { userId, input: message, attributed_user_id: personId, resources = [] } = input.body;
    const owner = await this.attribution.ownerOf(caller, personId);
    const threadId = newId();
    request.trail = { threadId };
    const created = await this.threads.create(
      {
        ...{ threadId, agent, userId, owner, ...referencesOf(input.body, caller.tokenId) },
        fileIds: resources.map(({ file_id }) => file_id),
        text: message?.content.map((part) => part.text).join('\n'),
      },
      { id: callerId(caller), owner: uploaderFor(caller) },
      { answer: ({ thread }) => answerOf(key, this.renderCreated(request, thread)) },
    );
    const [runId] = created.thread.summaries.runs.keys();
    request.trail = { threadId, runId };
    return created;
  }

  private renderCreated(request: ApiRequest, { threadId, summaries }: Handled['thread']): ThreadAnswer {
    const { thread, runs } = summaries;
    if (thread === null) throw new Error('A Thread was created without a summary.');
    const [run] = runs.values();
    const links = this.links.ofThread(request, threadId);
    return { thread: renderThread(thread, this.settings), run: run === undefined ? null : renderRun(run), links };
  }
}

/** The references of a new Thread. `client_external_ref`, the older name, is not unique; if both are given, they are equal. */
function referencesOf(
  { externalRef, client_external_ref }: { externalRef?: string | undefined; client_external_ref?: string | undefined },
  tokenId: string,
): Pick<NewThread, 'externalRef' | 'clientExternalRef'> {
  if (externalRef === undefined) return { clientExternalRef: client_external_ref };
  return { externalRef: { value: externalRef, tokenId } };
}
