import type { Pool, QueryConfig } from 'pg';
import { monotonicFactory } from 'ulid';
import type { Command, RecordedFact } from '#domain';
import {
  ThreadStore,
  type CommandHandler,
  type CommandRequest,
  type Fence,
  type Handled,
  type LoadedThread,
} from '#event-store';

export const newId = monotonicFactory();

/** As libs/platform/process/config.ts has it by default. */
export const LEASE_MS = 10_000;

const agentId = newId();
const organizationId = newId();
const limits = { queueMs: 600_000, workMs: 3_600_000, waitMs: 604_800_000, maxLosses: 3 };

/** What a POST with input asks for: four events, state row, both summaries and the work row. */
export function createWithMessage(runId: string, text = 'Hello, how are you today?'): Command[] {
  const owner = { personId: null, serviceTokenId: null };
  const run = { runId, agentVersion: 1, limits };
  return [
    { type: 'create_thread', agentId, organizationId, kind: 'cattle', userId: 'bench', owner },
    { type: 'add_message', text, requestId: null, fileIds: [], run, whenBusy: 'reject', by: null },
  ];
}

/** A Thread whose Run is started, and the claim that a worker writes under. */
export interface HotThread {
  thread: LoadedThread;
  fence: Fence;
}

/** Six events. */
export async function startThread(handler: CommandHandler): Promise<HotThread> {
  const threadId = newId();
  const fence = { runId: newId(), attempt: 1 };
  await handled(handler, { threadId, commands: createWithMessage(fence.runId) });
  await handled(handler, {
    threadId,
    commands: [{ type: 'claim_run', runId: fence.runId, dispatch: 1, holder: 'bench' }],
  });
  const { thread } = await handled(handler, { threadId, fence, commands: [{ type: 'start_run', ...fence }] });
  return { thread, fence };
}

/** Some more text of the answer, as a worker appends it. */
export async function appendDeltas(handler: CommandHandler, hot: HotThread, pieces: number): Promise<void> {
  const fact: RecordedFact = {
    type: 'assistant.text_added',
    data: { text: 'A piece of text of forty characters long.' },
  };
  const commands: Command[] = [{ type: 'record', ...hot.fence, facts: Array.from({ length: pieces }, () => fact) }];
  const { threadId } = hot.thread;
  hot.thread = (await handled(handler, { threadId, from: hot.thread, fence: hot.fence, commands })).thread;
}

/** Throws when the commands were not applied. */
export async function handled(handler: CommandHandler, request: CommandRequest): Promise<Handled> {
  const result = await handler.handle(request);
  if (result.outcome === 'appended') return result;
  throw new Error(`not appended: ${JSON.stringify(result)}`);
}

/** A hand-written statement: named, with its parameters made. */
export type Statement = Required<Pick<QueryConfig<unknown[]>, 'name' | 'text' | 'values'>>;

/** A store that keeps the statements instead of sending them: what Spool would send, for the floors to send by hand. */
export function recordingStore(): { store: ThreadStore; statements: Statement[] } {
  const statements: Statement[] = [];
  const query = ({ name, text, values }: Statement) => {
    statements.push({ name, text, values });
    return Promise.resolve({ rows: [{ appended: true }] });
  };
  const client = { query, release: () => undefined };
  const pool = { query, connect: () => Promise.resolve(client) } as unknown as Pool;
  return { store: new ThreadStore(pool, { lanes: 0, readLanes: 0 }), statements };
}
