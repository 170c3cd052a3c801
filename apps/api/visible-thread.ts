import type { Agent, AgentCatalogue } from '#agents';
import { agentAccess, mayUseThread, type Caller } from '#access';
import { agentError, notFound } from './http-errors.ts';
import type { SummaryReader, ThreadAndRun } from './queries/summary-reader.ts';

/** A Thread that the caller may see and whose Agent the caller may use now. */
export interface VisibleThread extends ThreadAndRun {
  agent: Agent;
}

/** The checks of access (decisions, section 2), on every request: reads, replays and streams too. */
export class AccessGuard {
  constructor(
    private readonly agents: AgentCatalogue,
    private readonly summaries: SummaryReader,
  ) {}

  /** Throws ApiError: not_found, forbidden, agent_not_published or service_inactive, in this order. */
  async findUsableAgent(caller: Caller, agentId: string): Promise<Agent> {
    const agent = await this.agents.find(agentId);
    if (agent === null) throw notFound('Agent');
    const access = agentAccess(caller, agent);
    if (access !== 'ok') throw agentError(access);
    return agent;
  }

  /**
   * Throws ApiError: not_found for a Thread that is not there, is not the caller's or whose Agent is deleted, and then as
   * `findUsableAgent` does.
   */
  async findVisibleThread(caller: Caller, threadId: string): Promise<VisibleThread> {
    const found = await this.summaries.findThread(threadId);
    if (found === null || !mayUseThread(caller, found.thread)) throw notFound('Thread');
    const agent = await this.agents.find(found.thread.agent_id);
    if (agent === null || agent.deleted) throw notFound('Thread');
    const access = agentAccess(caller, agent);
    if (access !== 'ok') throw agentError(access);
    return { ...found, agent };
  }
}
