import type { PoolClient } from 'pg';
import type { AgentCatalogue } from '#agents';
import type { Command } from '#domain';
import { newId } from '#platform';
import { ThreadRefused, type Threads } from '#threads';
import { auditHook, type Actor, type Change } from './audit.ts';
import { AdminRefused, missing } from './refused.ts';

/** A Run with the ids of what it belongs to. */
export interface RunPlace {
  runId: string;
  threadId: string;
  agentId: string;
  organizationId: string;
}

/** The author of a change of a Run, and what shares its transaction. */
export interface Changing {
  actor: Actor;
  /** More details of the audit entry. */
  details?: Record<string, unknown>;
  /** `newRunId`: the Run that continues a retried one. If it throws, nothing is changed. */
  within?: (client: PoolClient, newRunId: string | null, timeoutMs?: number) => Promise<void>;
}

const NO_LIVE_VERSION = 'The Agent is deleted or has no live version.';

/** Cancels a Run. Throws AdminRefused, as do the functions below; then there is no audit entry. */
export async function cancelRun(parts: { threads: Threads }, run: RunPlace, changing: Changing): Promise<void> {
  const { runId, threadId, organizationId } = run;
  const { actor, details, within } = changing;
  const entry = { action: 'run.cancelled', targetId: runId, organizationId, details: { threadId, ...details } };
  await changeThread(
    parts,
    threadId,
    { type: 'interrupt', runId, by: actor.id },
    {
      ...{ actor, entry },
      ...(within && { within: (client, timeoutMs) => within(client, null, timeoutMs) }),
    },
  );
}

/** Continues a failed, cancelled or expired Run in a new one, and returns its id. */
export async function retryRun(
  { threads, agents }: { threads: Threads; agents: AgentCatalogue },
  { runId, threadId, agentId, organizationId }: RunPlace,
  { actor, details, within }: Changing,
): Promise<string> {
  const agent = await agents.find(agentId);
  if (agent === null) throw new AdminRefused('conflict', NO_LIVE_VERSION);
  const newRunId = newId();
  const entry = { action: 'run.retried', targetId: runId, organizationId, details: { threadId, newRunId, ...details } };
  const hook = auditHook(actor, entry, within && ((client, timeoutMs) => within(client, newRunId, timeoutMs)));
  await orRefuse(threadId, threads.retry({ threadId, agent, runId, newRunId, isRepaired: true }, { hook }));
  return newRunId;
}

interface ThreadChange {
  actor: Actor;
  entry: Change;
  within?: (client: PoolClient, timeoutMs?: number) => Promise<void>;
}

/** Changes a Thread, with its audit entry in the same transaction. */
export async function changeThread(
  { threads }: { threads: Threads },
  threadId: string,
  command: Command,
  { actor, entry, within }: ThreadChange,
): Promise<void> {
  await orRefuse(threadId, threads.change(threadId, [command], { hook: auditHook(actor, entry, within) }));
}

/** Turns ThreadRefused into AdminRefused. */
async function orRefuse<T>(threadId: string, done: Promise<T>): Promise<T> {
  return done.catch((error: unknown) => {
    throw error instanceof ThreadRefused ? refusalOf(threadId, error) : error;
  });
}

function refusalOf(threadId: string, { refusal, message }: ThreadRefused): Error {
  switch (refusal.reason) {
    case 'rejected': {
      const { rejected, message: why } = refusal.rejection;
      return rejected === 'thread_missing' ? missing('Thread', threadId) : new AdminRefused('conflict', why);
    }
    case 'no_live_version':
      return new AdminRefused('conflict', NO_LIVE_VERSION);
    case 'agent_not_ready': {
      const details = refusal.issues.map(({ detail }) => detail);
      return new AdminRefused('conflict', `The Agent cannot run now: ${details.join(' ')}`);
    }
    case 'thread_contended':
      return new AdminRefused('conflict', 'Too many writers change the Thread; repeat the request.');
    case 'draft_repeated':
    case 'draft_not_found':
    case 'too_many_attachments':
    case 'reference_taken':
    case 'quota_full':
    case 'run_not_found':
    case 'file_changed':
    case 'key_taken':
    case 'files_contended':
      // Operators create no Threads, attach no files and send no keys.
      return new Error(message);
  }
}
