import type { Pool } from 'pg';
import type { AdminAnswer, AdminOperations, ManagedFile } from '#contract';
import type { FileStore } from '#files';
import { namedStatement, rethrowUnavailable } from '#platform';
import type { AdminContext, SomeHandlers } from './handlers.ts';
import { AdminReader, PAGE_BYTES, pageOf } from './reader.ts';
import { missing } from './refused.ts';
import { changeThread } from './change-run.ts';
import { findThread, type ThreadHandlerParts } from './thread-handlers.ts';

const THREAD_EVENTS = namedStatement(`${import.meta.dirname}/queries`, 'thread-events.sql').text;
const THREAD_FILES = namedStatement(`${import.meta.dirname}/queries`, 'thread-files.sql').text;

export interface ThreadContentParts {
  pool: Pool;
  files: FileStore;
}

/** Handles archiving, as callers can, with an entry in the audit log. */
export function archiveHandlers(parts: ThreadHandlerParts): SomeHandlers<'archiveThread' | 'unarchiveThread'> {
  const reader = new AdminReader(parts.pool);
  const change = async (threadId: string, type: 'archive' | 'unarchive', { actor }: AdminContext) => {
    const { organizationId } = await findThread(reader, threadId);
    const entry = { action: `thread.${type}d`, targetId: threadId, organizationId };
    await changeThread(parts, threadId, { type }, { actor, entry });
    return { thread: await findThread(reader, threadId) };
  };
  return {
    archiveThread: ({ params: { threadId } }, context) => change(threadId, 'archive', context),
    unarchiveThread: ({ params: { threadId } }, context) => change(threadId, 'unarchive', context),
  };
}

/** Handles the content of Threads: stored events and files. */
export function threadContentHandlers({
  pool,
  files,
}: ThreadContentParts): SomeHandlers<'listThreadEvents' | 'listThreadFiles' | 'downloadFile'> {
  const reader = new AdminReader(pool);
  return {
    listThreadEvents: async ({ params: { threadId }, query: { limit, before } }) => {
      await findThread(reader, threadId);
      type Row = AdminAnswer<AdminOperations['listThreadEvents']>['events'][number];
      const values = [threadId, before ?? null, limit, PAGE_BYTES];
      const { rows: events } = await pool.query<Row>({ text: THREAD_EVENTS, values }).catch(rethrowUnavailable);
      const last = events.at(-1)?.version ?? 1;
      return { events, nextBefore: last > 1 ? last : null };
    },

    listThreadFiles: async ({ params: { threadId }, query: { limit, cursor } }) => {
      await findThread(reader, threadId);
      const values = [threadId, cursor ?? null, limit + 1];
      const { rows } = await pool.query<ManagedFile>({ text: THREAD_FILES, values }).catch(rethrowUnavailable);
      const { page, nextCursor } = pageOf(rows, limit);
      return { files: page, nextCursor };
    },

    downloadFile: async ({ params: { fileId } }) => {
      const file = await files.find(fileId);
      // A draft is private to its uploader until it is attached to a Thread.
      if (file === null || file.thread_id === null) throw missing('file', fileId);
      return file;
    },
  };
}
