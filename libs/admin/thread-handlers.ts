import type { Pool } from 'pg';
import type { AgentCatalogue } from '#agents';
import type { ManagedRun, ManagedThread } from '#contract';
import type { ThreadStore } from '#event-store';
import type { LiveBus } from '#live';
import type { Threads } from '#threads';
import { writeEntry } from './audit.ts';
import { cancelRun, changeThread, retryRun, type RunPlace } from './change-run.ts';
import type { SomeHandlers } from './handlers.ts';
import { AdminReader, pageOf } from './reader.ts';
import { missing } from './refused.ts';
import { tailThread } from './tail-thread.ts';

export interface ThreadHandlerParts {
  pool: Pool;
  store: ThreadStore;
  threads: Threads;
  agents: AgentCatalogue;
  bus: LiveBus;
}

const SHOWN_RUNS = 20;
const MAX_SUGGESTIONS = 20;
/** Limits of one read. */
const EXPORT_PAGE = { maxEvents: 50, maxBytes: 512 * 1024 };

/** Handles Threads and Runs of all organizations. A change and its audit entry share a transaction. */
export function threadHandlers(
  parts: ThreadHandlerParts,
): SomeHandlers<'listThreads' | 'getThread' | 'exportThread' | 'tailThread' | 'terminateThread' | 'deleteThread'> {
  const { pool, store, threads } = parts;
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
        // A Thread deleted during the export must not look like a complete one.
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
      const isDeleted = await threads.delete(threadId, (client) => writeEntry(client, actor, entry));
      if (!isDeleted) throw missing('Thread', threadId);
      return { ok: true };
    },
  };
}

export function runHandlers(
  parts: ThreadHandlerParts,
): SomeHandlers<'listRuns' | 'suggestFilterValues' | 'getRun' | 'cancelRun' | 'retryRun'> {
  const reader = new AdminReader(parts.pool);
  return {
    listRuns: async ({ query: { limit, scope, ...wanted } }) => {
      if (wanted.threadId !== undefined) await findThread(reader, wanted.threadId);
      // The Runs of a problem are live ones anyway.
      const live = scope === 'live' && wanted.threadId === undefined && wanted.problem === undefined;
      const { page, nextCursor } = pageOf(await reader.runs({ ...wanted, live, limit: limit + 1 }), limit);
      return { runs: page, nextCursor };
    },

    suggestFilterValues: async ({ query: { of, text = '' } }) => ({
      values: await reader.suggestions(of, text, MAX_SUGGESTIONS),
    }),

    getRun: async ({ params: { runId } }) => ({ run: await findRun(reader, runId) }),

    cancelRun: async ({ params: { runId } }, { actor }) => {
      await cancelRun(parts, await placeOf(reader, runId), { actor });
      return { run: await findRun(reader, runId) };
    },

    retryRun: async ({ params: { runId } }, { actor }) => {
      const newRunId = await retryRun(parts, await placeOf(reader, runId), { actor });
      return { run: await findRun(reader, newRunId) };
    },
  };
}

/** Returns the Thread. Throws AdminRefused, as does the function below. */
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

async function placeOf(reader: AdminReader, runId: string): Promise<RunPlace> {
  const { threadId, agentId, organizationId } = await findRun(reader, runId);
  return { runId, threadId, agentId, organizationId };
}
