import type { AgentCatalogue } from '#agents';
import { operations, type AgentAnswer, type OkAnswer, type ThreadAnswer } from '#contract';
import { attachFile, deriveTitle, type Command, type CreateThread } from '#domain';
import { absentThread, type CommandHandler, type CommandRequest, type Handled, type LoadedThread } from '#event-store';
import type { BlobKeeper } from '#files';
import { newId } from '#platform';
import type { Attribution } from './attribution.ts';
import type { ApiRequest } from './caller.ts';
import type { Extensions } from './extensions.ts';
import { referencesOf, type ExternalRefs } from './external-refs.ts';
import { idsOf, type Drafts } from './files/drafts.ts';
import { notFound, rejectionError, threadContended } from './http-errors.ts';
import type { Answer, Idempotency } from './idempotency.ts';
import type { Links } from './links.ts';
import { addMessage, requirePlan } from './new-runs.ts';
import type { SummaryReader, ThreadAndRun } from './queries/summary-reader.ts';
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
    private readonly references: ExternalRefs,
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
    const { title: wanted } = request.input.body;
    const text = wanted === null ? await this.summaries.findFirstMessage(threadId) : null;
    const title = wanted ?? deriveTitle(text ?? '');
    // The first message never changes, but it may arrive after the look-up.
    let cameSince = false;
    const setTitle = ({ summaries }: LoadedThread): Command[] => {
      cameSince = wanted === null && text === null && summaries.thread?.last_run_id !== null;
      return cameSince ? [] : [{ type: 'set_title', title }];
    };
    // A TERMINATED Thread refuses the title even if nothing would change.
    const changes = title !== thread.title || thread.status === 'TERMINATED';
    if (changes) await this.change(threadId, setTitle);
    if (cameSince) return this.updateThread(request);
    const changed = await this.summaries.findThread(threadId, { withRun: true });
    if (changed === null) throw notFound('Thread');
    return this.renderRead(request, changed);
  }

  async setArchived(
    { caller, input }: ApiRequest<typeof operations.archiveThread | typeof operations.unarchiveThread>,
    type: 'archive' | 'unarchive',
  ): Promise<OkAnswer> {
    const { threadId } = input.params;
    await this.access.findVisibleThread(caller, threadId);
    await this.change(threadId, [{ type }]);
    return { ok: true };
  }

  private async change(threadId: string, commands: CommandRequest['commands']): Promise<void> {
    const result = await this.handler.handle({ threadId, commands });
    if (result.outcome === 'rejected') throw rejectionError(result.rejection);
    if (result.outcome === 'conflict') throw threadContended();
  }

  async deleteThread({ caller, input }: ApiRequest<typeof operations.deleteThread>): Promise<OkAnswer> {
    const { threadId } = input.params;
    await this.access.requireDeletableThread(caller, threadId);
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
        const { userId, input: message } = input.body;
        const { id: agentId, organizationId, kind } = agent;
        const fileIds = idsOf(input.body.resources);
        const owner = await this.attribution.ownerOf(caller, personId);
        const files = this.drafts.claim(caller, agentId, fileIds);
        const fileNames = await this.drafts.namesOf(fileIds);
        const references = referencesOf(input.body, caller.tokenId);
        const created: CreateThread = {
          ...{ type: 'create_thread', agentId, organizationId, kind, userId, owner },
          ...references,
        };
        const commands: Command[] = [created];
        const threadId = newId();
        request.trail = { threadId };
        if (message !== undefined) {
          const text = message.content.map((part) => part.text).join('\n');
          const added = addMessage(await requirePlan(this.agents, agent), caller, {
            ...{ text, requestId: null, fileIds, fileNames },
          });
          request.trail.runId = added.run.runId;
          commands.push(added);
        } else {
          // At once, for the first Run to mount (docs/spec/decisions.md#early-files).
          commands.push(...fileIds.map((fileId) => attachFile(fileId, fileNames.get(fileId))));
        }
        const from = absentThread(threadId);
        const hook = () => this.drafts.hookFor(files);
        return this.references.orRefuse(created, async () =>
          this.drafts.orRefuse(await this.handler.handle({ threadId, from, commands, answer, hook }), files),
        );
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
