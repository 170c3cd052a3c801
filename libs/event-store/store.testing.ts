import { Client, type Pool } from 'pg';
import { ulid } from 'ulid';
import type { Command, NewRun, RecordedFact } from '#domain';
import { openDatabase } from '#platform';
import { createTestDatabase, eventually } from '#testing';
import {
  absentThread,
  CommandHandler,
  type CommandHandlerOptions,
  type CommandRequest,
  type Handled,
} from './handle-commands.ts';
import { nameOf, type Append, type AppendResult, type Fence, type KeyedAnswer, type LoadedThread } from './append.ts';
import { ThreadStore } from './thread-store.ts';

/** The event store of one process: a real pool, store and handler. */
export interface Process {
  pool: Pool;
  store: ThreadStore;
  handler: CommandHandler;
  close: () => Promise<void>;
}

interface ProcessOptions extends Partial<CommandHandlerOptions> {
  maxConnections?: number;
  statementTimeoutMs?: number;
}

export async function openProcess(url: string, options: ProcessOptions = {}): Promise<Process> {
  const { maxConnections = 10, statementTimeoutMs = 30_000, ...more } = options;
  const applicationName = 'event-store test';
  const database = await openDatabase({ url, applicationName, maxConnections, statementTimeoutMs });
  const store = new ThreadStore(database.pool);
  const handler = new CommandHandler({ store, leaseMs: 10_000, ...more });
  return { pool: database.pool, store, handler, close: () => database.close() };
}

/** A database, one process on it, and a connection that can watch and block it. */
export interface Fixture extends Process {
  url: string;
  /** Connects as the owner, which may change and delete events. */
  admin: Client;
}

export async function openFixture(options: ProcessOptions = {}): Promise<Fixture> {
  const database = await createTestDatabase();
  const { url } = database;
  const admin = await connect(database.ownerUrl);
  const own = await openProcess(url, options);
  const close = async (): Promise<void> => {
    await own.close();
    await admin.end();
    await database.drop();
  };
  return { ...own, url, admin, close };
}

export async function connect(url: string): Promise<Client> {
  const client = new Client({ connectionString: url });
  client.on('error', () => undefined); // The next query reports it.
  await client.connect();
  return client;
}

/** Waits until at least `count` backends of the processes under test wait for a lock. Returns their process ids. */
export async function blockedBackends(admin: Client, count: number): Promise<number[]> {
  const query = `select pid from pg_stat_activity
                 where datname = current_database() and wait_event_type = 'Lock' and pid <> pg_backend_pid()
                   and application_name = 'event-store test'`;
  return eventually(
    async () => {
      await admin.query('select pg_stat_clear_snapshot()'); // A transaction would keep its snapshot.
      const { rows } = await admin.query<{ pid: number }>(query);
      return rows.length >= count && rows.map(({ pid }) => pid);
    },
    { what: `${count} backends wait for a lock` },
  );
}

/** Locks a Thread's state row while `act` runs, so that appends to the Thread wait. */
export async function whileLocked<T>(admin: Client, threadId: string, act: () => Promise<T>): Promise<T> {
  await admin.query('begin');
  await admin.query('select from streams where thread_id = $1 for update', [threadId]);
  try {
    return await act();
  } finally {
    await admin.query('rollback');
  }
}

export const newRun = (runId = ulid()): NewRun => ({
  runId,
  agentVersion: 1,
  limits: { queueMs: 600_000, workMs: 3_600_000, waitMs: 604_800_000, maxLosses: 3 },
});

export const createThread = (): Command => ({
  type: 'create_thread',
  agentId: ulid(),
  organizationId: ulid(),
  kind: 'cattle',
  userId: 'user',
  owner: { personId: ulid(), serviceTokenId: null },
});

export const addMessage = (text = 'Hello', run = newRun(), whenBusy: 'reject' | 'enqueue' = 'reject'): Command => ({
  type: 'add_message',
  text,
  requestId: null,
  fileIds: [],
  run,
  whenBusy,
  by: null,
});

export const piece = (text = 'some words'): RecordedFact => ({ type: 'assistant.text_added', data: { text } });

/** Returns the command with which a worker records facts under its claim. */
export const record = (fence: Fence, ...facts: RecordedFact[]): Command => ({
  type: 'record',
  ...fence,
  facts: facts.length > 0 ? facts : [piece()],
});

export const answerUnder = (key: string, tokenId = 'token'): KeyedAnswer => ({
  tokenId,
  key,
  fingerprint: 'fingerprint',
  status: 201,
  body: '{"ok":true}',
});

/** Applies the commands, or throws. */
export async function apply(handler: CommandHandler, request: CommandRequest): Promise<Handled> {
  const result = await handler.handle(request);
  if (result.outcome === 'appended') return result;
  throw new Error(`not appended: ${JSON.stringify(result)}`);
}

/** Counts results by their names. */
export function tally(results: Parameters<typeof nameOf>[0][]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const name of results.map(nameOf)) counts[name] = (counts[name] ?? 0) + 1;
  return counts;
}

/** Returns the append of the commands without sending it. */
export async function makeAppend(request: CommandRequest & { from: LoadedThread }): Promise<Append> {
  const made: Append[] = [];
  const keep = async (append: Append): Promise<AppendResult> => {
    made.push(append);
    return { outcome: 'appended' };
  };
  const store = { append: keep } as unknown as ThreadStore;
  await apply(new CommandHandler({ store, leaseMs: 10_000 }), request);
  const [append] = made;
  if (append === undefined) throw new Error('the commands lead to no append');
  return append;
}

/** Creates an idle Thread. */
export async function idleThread({ handler }: Process): Promise<LoadedThread> {
  const threadId = ulid();
  return (await apply(handler, { threadId, from: absentThread(threadId), commands: [createThread()] })).thread;
}

/** Creates a Thread with a running Run. Returns it with the claim of its worker. */
export async function runningThread({ handler }: Process): Promise<{ thread: LoadedThread; fence: Fence }> {
  const threadId = ulid();
  const fence = { runId: ulid(), attempt: 1 };
  const commands: Command[] = [
    createThread(),
    addMessage('Hello', newRun(fence.runId)),
    { type: 'claim_run', runId: fence.runId, dispatch: 1, holder: 'worker' },
    { type: 'start_run', ...fence },
  ];
  const { thread } = await apply(handler, { threadId, from: absentThread(threadId), commands });
  return { thread, fence };
}

/** Makes the Run of the claim request confirmations, and decides each of them. Their ids are equal to those of the tool calls. */
export async function askAndDecide({ handler }: Process, threadId: string, fence: Fence, ids: string[]): Promise<void> {
  const call = { toolName: 'tool', title: 'Tool', toolInput: {} };
  const asked = ids.map((id) => ({
    type: 'tool.confirmation_requested' as const,
    data: { ...call, toolCallId: id, requestId: id },
  }));
  const requests = ids.map((id) => ({ requestId: id, toolCallId: id }));
  const commands: Command[] = [record(fence, ...asked), { type: 'wait_for_decisions', ...fence, requests }];
  await apply(handler, { threadId, fence, commands });
  for (const requestId of ids) {
    const decide: Command = { type: 'decide_permission', requestId, decision: 'allow_once', by: 'ann' };
    await apply(handler, { threadId, commands: [decide] });
  }
}

/** Returns all stored events of a Thread. */
export const readAll = ({ store }: Process, threadId: string) => store.readStream(threadId, 0, { maxEvents: 10_000 });
