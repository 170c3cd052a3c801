import type { AgentCatalogue } from '#agents';
import { ownerFor } from '#access';
import { operations, type AgentAnswer, type ThreadAnswer } from '#contract';
import type { Command } from '#domain';
import { absentThread, type CommandHandler, type Handled } from '#event-store';
import { newId } from '#platform';
import type { ApiRequest } from './caller.ts';
import type { Answer, Idempotency } from './idempotency.ts';
import type { Links } from './links.ts';
import { addMessage, planRuns, refuseResources } from './new-runs.ts';
import { renderAgent, renderRun, renderThread } from './render.ts';
import type { AccessGuard } from './visible-thread.ts';

/** Agents and their Threads. */
export class ThreadService {
  constructor(
    private readonly access: AccessGuard,
    private readonly agents: AgentCatalogue,
    private readonly handler: CommandHandler,
    private readonly idempotency: Idempotency,
    private readonly links: Links,
  ) {}

  async getAgent({ caller, input }: ApiRequest<typeof operations.getAgent>): Promise<AgentAnswer> {
    return { agent: renderAgent(await this.access.findUsableAgent(caller, input.params.agentId)) };
  }

  async getThread(request: ApiRequest<typeof operations.getThread>): Promise<ThreadAnswer> {
    const { thread, run } = await this.access.findVisibleThread(request.caller, request.input.params.threadId);
    return {
      thread: renderThread(thread),
      run: run && renderRun(run),
      links: this.links.ofThread(request, thread.thread_id),
    };
  }

  /** One append, and for an agent that is known not a single read before it. */
  async createThread(request: ApiRequest<typeof operations.createThread>): Promise<Answer> {
    const { caller, input } = request;
    const agent = await this.access.findUsableAgent(caller, input.params.agentId);
    return this.idempotency.answerOnce(request, operations.createThread, {
      perform: async (answer) => {
        const { userId, input: message, resources } = input.body;
        refuseResources(resources);
        const { id: agentId, organizationId, kind } = agent;
        const commands: Command[] = [
          { type: 'create_thread', agentId, organizationId, kind, userId, owner: ownerFor(caller) },
        ];
        const threadId = newId();
        request.trail = { threadId };
        if (message !== undefined) {
          const text = message.content.map((part) => part.text).join('\n');
          const added = addMessage(await planRuns(this.agents, agent), caller, text, null);
          request.trail.runId = added.run.runId;
          commands.push(added);
        }
        return this.handler.handle({ threadId, from: absentThread(threadId), commands, answer });
      },
      render: ({ thread }) => this.renderCreated(request, thread),
    });
  }

  private renderCreated(request: ApiRequest, { threadId, summaries }: Handled['thread']): ThreadAnswer {
    const { thread, runs } = summaries;
    if (thread === null) throw new Error('A Thread was created without a summary.');
    const [run] = runs.values();
    const links = this.links.ofThread(request, threadId);
    return { thread: renderThread(thread), run: run === undefined ? null : renderRun(run), links };
  }
}
