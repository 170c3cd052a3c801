import { agentAccess, ownerFor, type Caller, type Ownership } from '#access';
import type { AgentCatalogue } from '#agents';
import type { operations } from '#contract';
import { decodePlace, encodePlace, type ListThreadsAnswer } from '#contract';
import type { AccessGuard } from './access-guard.ts';
import { requireUser } from './http/browser-rights.ts';
import type { ApiRequest } from './http/caller.ts';
import type { Extensions } from './extensions.ts';
import type { SummaryReader } from './queries/summary-reader.ts';
import { ANSWER_BYTES } from './http/large-answers.ts';
import { renderRun, renderThread, type Rendering } from './render.ts';

/** Lists the Threads of callers. */
export class ThreadLists {
  constructor(
    private readonly access: AccessGuard,
    private readonly agents: AgentCatalogue,
    private readonly summaries: SummaryReader,
    private readonly extensions: Extensions,
    private readonly settings: Rendering,
  ) {}

  async ofAgent(request: ApiRequest<typeof operations.listThreads>): Promise<ListThreadsAnswer> {
    requireUser(request.caller, request.input.query.userId);
    const { id } = await this.access.findUsableAgent(request.caller, request.input.params.agentId);
    return this.list(request, [id]);
  }

  /** Omits Threads that a single read would refuse, such as those of an unpublished Agent. */
  async ofAllAgents(request: ApiRequest<typeof operations.listAllThreads>): Promise<ListThreadsAnswer> {
    requireUser(request.caller, request.input.query.userId);
    return this.list(request, await this.usableAgents(request.caller));
  }

  private async list(
    request: ApiRequest<typeof operations.listThreads | typeof operations.listAllThreads>,
    agentIds: readonly string[],
  ): Promise<ListThreadsAnswer> {
    const { limit, cursor, archived, status = null, externalRef, runStatus } = request.input.query;
    const { caller, input } = request;
    const userId = caller.kind === 'browser' ? caller.userId : input.query.userId;
    const { threads: page, isCut } = await this.summaries.listThreads({
      owner: ownershipOf(request.caller),
      agentIds,
      status,
      archived: archived === 'all' ? null : archived === 'true',
      filters: { userId, externalRef },
      runStatuses: runStatus,
      after: cursor === undefined ? null : decodePlace(cursor),
      limit,
      maxRunBytes: request.input.extended ? ANSWER_BYTES : null,
    });
    const last = isCut ? page.at(-1)?.thread : undefined;
    const nextCursor = last ? encodePlace({ updatedAt: last.updated_at, threadId: last.thread_id }) : null;
    const threads = page.map(({ thread, run }) => ({
      ...renderThread(thread, this.settings),
      ...(run !== undefined && { run: run && renderRun(run) }),
    }));
    return this.extensions.extend(request, { threads, nextCursor });
  }

  /** Returns the Agents of which the caller has Threads and that the caller may currently use. */
  private async usableAgents(caller: Caller): Promise<string[]> {
    const usable: string[] = [];
    for (const agentId of await this.summaries.listOwnedAgents(ownershipOf(caller))) {
      // Reads one at a time: almost all are cached, and a caller with many Agents must not take every connection.
      const agent = await this.agents.find(agentId);
      if (agent !== null && agentAccess(caller, agent) === 'ok') usable.push(agentId);
    }
    return usable;
  }
}

function ownershipOf(caller: Caller): Ownership {
  const { personId: owner_person_id, serviceTokenId: owner_service_token_id } = ownerFor(caller);
  return { owner_person_id, owner_service_token_id };
}
