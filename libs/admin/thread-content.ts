import type { AdminContext, SomeHandlers } from './handlers.ts';
import { AdminReader } from './reader.ts';
import { changeThread, findThread, type ThreadHandlerParts } from './thread-handlers.ts';

/** What Threads are put away with: as callers can, and in the audit log. */
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
