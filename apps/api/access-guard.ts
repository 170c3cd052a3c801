import type { Agent, AgentCatalogue } from '#agents';
import { agentAccess, isOwn, type Caller } from '#access';
import type { ThreadAndRun, ThreadParts, ThreadStore } from '#event-store';
import type { FileRow, FileStore } from '#files';
import { agentError, notFound } from './http/http-errors.ts';

/** A Thread that the caller may see. The caller may currently use its Agent. */
export interface VisibleThread extends ThreadAndRun {
  agent: Agent;
}

/** A file that the caller may see. The caller may currently use its Agent. */
export interface VisibleFile {
  file: FileRow;
  agent: Agent;
}

/** Checks access on every request, including reads, replays and streams (docs/spec/decisions.md#access). */
export class AccessGuard {
  constructor(
    private readonly agents: AgentCatalogue,
    private readonly threads: ThreadStore,
    private readonly files: FileStore,
  ) {}

  /** Returns the Agent. Throws ApiError: not_found, forbidden, agent_not_published or service_inactive, in this order. */
  async findUsableAgent(caller: Caller, agentId: string): Promise<Agent> {
    const agent = await this.agents.find(agentId);
    if (agent === null) throw notFound('Agent');
    const access = agentAccess(caller, agent);
    if (access !== 'ok') throw agentError(access, agent);
    return agent;
  }

  /**
   * Returns the Thread. Throws ApiError not_found if it does not exist, is not the caller's, or has a deleted Agent. Then
   * throws as `findUsableAgent` does.
   */
  async findVisibleThread(caller: Caller, threadId: string, wanted?: ThreadParts): Promise<VisibleThread> {
    return this.requireVisible(caller, await this.threads.findThread(threadId, wanted));
  }

  /** Returns a Thread that was read, with its Agent. Throws as `findVisibleThread` does. */
  async requireVisible<Found extends ThreadAndRun>(
    caller: Caller,
    found: Found | null,
  ): Promise<Found & VisibleThread> {
    const own = requireOwn(caller, found);
    return { ...own, agent: await this.usableAgentOf(caller, own.thread.agent_id, 'Thread') };
  }

  /**
   * Throws ApiError as `findVisibleThread` does, but ignores the state of the Agent. Owners may delete their Thread while its
   * Agent is unpublished or inactive (docs/spec/decisions.md#access).
   */
  async requireDeletableThread(caller: Caller, threadId: string): Promise<void> {
    const { thread } = requireOwn(caller, await this.threads.findThread(threadId));
    const agent = await this.existingAgentOf(thread.agent_id, 'Thread');
    const access = agentAccess(caller, agent);
    if (access === 'forbidden') throw agentError(access, agent);
  }

  /** Returns a draft of the caller, or a file of a Thread that the caller may see. Throws as `findVisibleThread` does. */
  async findVisibleFile(caller: Caller, fileId: string): Promise<VisibleFile> {
    const file = await this.files.find(fileId);
    if (file === null) throw notFound('File');
    const thread = file.thread_id === null ? null : await this.threads.findThread(file.thread_id);
    const isVisible = file.thread_id === null ? isOwn(caller, file, file.owner_user_id) : isOwnThread(caller, thread);
    if (!isVisible) throw notFound('File');
    const { agent_id } = thread?.thread ?? file;
    return { file, agent: await this.usableAgentOf(caller, agent_id ?? '', 'File') };
  }

  private async existingAgentOf(agentId: string, what: 'Thread' | 'File'): Promise<Agent> {
    const agent = await this.agents.find(agentId);
    if (agent === null || agent.deleted) throw notFound(what);
    return agent;
  }

  private async usableAgentOf(caller: Caller, agentId: string, what: 'Thread' | 'File'): Promise<Agent> {
    const agent = await this.existingAgentOf(agentId, what);
    const access = agentAccess(caller, agent);
    if (access !== 'ok') throw agentError(access, agent);
    return agent;
  }
}

const isOwnThread = (caller: Caller, found: ThreadAndRun | null): boolean =>
  found !== null && isOwn(caller, found.thread, found.thread.user_id);

function requireOwn<Found extends ThreadAndRun>(caller: Caller, found: Found | null): Found {
  if (found === null || !isOwnThread(caller, found)) throw notFound('Thread');
  return found;
}
