import type { Pool } from 'pg';
import { planRuns, type AgentCatalogue } from '#agents';
import type { ManagedRun, ManagedThread } from '#contract';
import type { Command, NewRun } from '#domain';
import type { CommandHandler, ThreadStore } from '#event-store';
import type { BlobKeeper } from '#files';
import type { LiveBus } from '#live';
import { newId } from '#platform';
import { auditHook, writeEntry, type Actor, type Change } from './audit.ts';
import type { SomeHandlers } from './handlers.ts';
import { AdminReader, pageOf } from './reader.ts';
import { AdminRefused, missing } from './refused.ts';
import { tailThread } from './tail-thread.ts';

export interface ThreadHandlerParts {
  pool: Pool;
  store: ThreadStore;
  handler: CommandHandler;
  agents: AgentCatalogue;
  blobs: BlobKeeper;
  bus: LiveBus;
}

const SHOWN_RUNS = 20;
/** How much is read at once. */
const EXPORT_PAGE = { maxEvents: 50, maxBytes: 512 * 1024 };

/** Handles Threads and Runs of all organizations. A change and its audit entry share a transaction. */
export function threadHandlers(
  parts: ThreadHandlerParts,
): SomeHandlers<'listThreads' | 'getThread' | 'exportThread' | 'tailThread' | 'terminateThread' | 'deleteThread'> {
  const { pool, store, handler, blobs } = parts;
  const reader = new AdminReader(pool);
  return {
    listThreads: async ({ query: { limit, ...wanted } }) => {
      const { page, nextCursor } = pageOf(await reader.threads({ ...wanted, limit: limit + 1 }), limit);
      return { threads: page, nextCursor };
    },

    getThread: async ({ params: { threadId } }) => {
      const thread = await findThread(reader, threadId);
      const runs = await reader.runs({ threadId, limit: SHOWN_RUNS });
      return { thread, events: (await store.load(threadId))?.version ?? 0, runs };
    },

    exportThread: async function* ({ params: { threadId } }, { signal }) {
      const thread = await store.load(threadId);
      for (let version = 0; !signal.aborted && version < (thread?.version ?? 1);) {
        const events = await store.readStream(threadId, version, EXPORT_PAGE);
        // It never was there, or was deleted meanwhile: part of a stream must not look like the whole.
        if (events.length === 0) throw missing('Thread', threadId);
        yield* events;
        version = events.at(-1)!.version;
      }
    },

    tailThread: async function* ({ params: { threadId }, query }, { signal }) {
      await findThread(reader, threadId);
      yield* tailThread(parts, { threadId, after: query.after, untilIdle: query.until === 'idle' }, signal);
    },

    terminateThread: async ({ params: { threadId } }, { actor }) => {
      const { organizationId } = await findThread(reader, threadId);
      const entry = { action: 'thread.terminated', targetId: threadId, organizationId };
      await changeThread(parts, threadId, { type: 'terminate_thread' }, { actor, entry });
      return { thread: await findThread(reader, threadId) };
    },

    deleteThread: async ({ params: { threadId } }, { actor }) => {
      const { organizationId } = await findThread(reader, threadId);
      const entry = { action: 'thread.deleted', targetId: threadId, organizationId };
      const blobKeys = await handler.deleteThread(threadId, (client) => writeEntry(client, actor, entry));
      if (blobKeys === null) throw missing('Thread', threadId);
      await blobs.discard(blobKeys);
      return { ok: true };
    },
  };
}

export function runHandlers(parts: ThreadHandlerParts): SomeHandlers<'listRuns' | 'getRun' | 'cancelRun' | 'retryRun'> {
  const reader = new AdminReader(parts.pool);
  return {
    listRuns: async ({ query: { limit, scope, ...wanted } }) => {
      if (wanted.threadId !== undefined) await findThread(reader, wanted.threadId);
      const live = scope === 'live' && wanted.threadId === undefined;
      const { page, nextCursor } = pageOf(await reader.runs({ ...wanted, live, limit: limit + 1 }), limit);
      return { runs: page, nextCursor };
    },

    getRun: async ({ params: { runId } }) => ({ run: await findRun(reader, runId) }),

    cancelRun: async ({ params: { runId } }, { actor }) => {
      const { threadId } = await findRun(reader, runId);
      const { organizationId } = await findThread(reader, threadId);
      const entry = { action: 'run.cancelled', targetId: runId, organizationId, details: { threadId } };
      await changeThread(parts, threadId, { type: 'interrupt', runId, by: actor.id }, { actor, entry });
      return { run: await findRun(reader, runId) };
    },

    retryRun: async ({ params: { runId } }, { actor }) => ({ run: await retryRun(parts, reader, runId, actor) }),
  };
}

/** Throws AdminRefused, as those below. */
export async function findThread(reader: AdminReader, id: string): Promise<ManagedThread> {
  const [thread] = await reader.threads({ id });
  if (thread === undefined) throw missing('Thread', id);
  return thread;
}

export async function findRun(reader: AdminReader, id: string): Promise<ManagedRun> {
  const [run] = await reader.runs({ id });
  if (run === undefined) throw missing('Run', id);
  return run;
}

async function retryRun(
  parts: ThreadHandlerParts,
  reader: AdminReader,
  runId: string,
  actor: Actor,
): Promise<ManagedRun> {
  const { threadId } = await findRun(reader, runId);
  const { agentId, organizationId } = await findThread(reader, threadId);
  const run = await planRun(parts.agents, agentId);
  const details = { threadId, newRunId: run.runId };
  const entry = { action: 'run.retried', targetId: runId, organizationId, details };
  await changeThread(parts, threadId, { type: 'retry_run', runId, run }, { actor, entry });
  return findRun(reader, run.runId);
}

/** What a new Run starts with: the live version, if the agent can run at all. */
async function planRun(agents: AgentCatalogue, agentId: string): Promise<NewRun> {
  const agent = await agents.find(agentId);
  const planned = agent === null || agent.deleted ? null : await planRuns(agents, agent);
  if (planned === null) throw new AdminRefused('conflict', 'The Agent is deleted or has no live version.');
  if ('plan' in planned) return { ...planned.plan.run, runId: newId() };
  const details = planned.lacks.map(({ detail }) => detail);
  throw new AdminRefused('conflict', `The Agent cannot run now: ${details.join(' ')}`);
}

/** Changes a Thread, with its audit entry in the same transaction. Throws AdminRefused; then there is no entry. */
export async function changeThread(
  { handler }: ThreadHandlerParts,
  threadId: string,
  command: Command,
  { actor, entry }: { actor: Actor; entry: Change },
): Promise<void> {
  const result = await handler.handle({ threadId, commands: [command], hook: () => auditHook(actor, entry) });
  if (result.outcome === 'rejected') {
    const { rejected, message } = result.rejection;
    throw rejected === 'thread_missing' ? missing('Thread', threadId) : new AdminRefused('conflict', message);
  }
  if (result.outcome === 'conflict')
    throw new AdminRefused('conflict', 'Too many writers change the Thread; repeat the request.');
}
