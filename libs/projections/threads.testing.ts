import { setTimeout as delay } from 'node:timers/promises';
import { Client, type Pool } from 'pg';
import { ulid } from 'ulid';
import { runError, type Command, type NewRun, type RecordedFact, type ToolCall } from '#domain';
import { CommandHandler, ThreadStore } from '#event-store';
import { openDatabase } from '#platform';
import { createTestDatabase } from '#testing';

/** A database with a command handler, a connection that can break rows, and a pool like the one of an operator's command. */
export interface Fixture {
  url: string;
  handler: CommandHandler;
  admin: Client;
  pool: Pool;
  close: () => Promise<void>;
}

export async function openFixture(): Promise<Fixture> {
  const test = await createTestDatabase();
  const { url } = test;
  const writer = await openDatabase({ url, applicationName: 'writer', maxConnections: 6 });
  const reader = await openDatabase({ url, applicationName: 'projections', maxConnections: 1 });
  const admin = new Client({ connectionString: test.ownerUrl });
  await admin.connect();
  const handler = new CommandHandler({ store: new ThreadStore(writer.pool), leaseMs: 10_000 });
  const close = async (): Promise<void> => {
    await Promise.all([writer.close(), reader.close(), admin.end()]);
    await test.drop();
  };
  return { url, handler, admin, pool: reader.pool, close };
}

export const newRun = (runId = ulid()): NewRun => ({
  runId,
  agentVersion: 1,
  limits: { queueMs: 600_000, workMs: 3_600_000, waitMs: 604_800_000, maxLosses: 3 },
});

export const message = (run = newRun(), text = 'Hello', whenBusy: 'reject' | 'enqueue' = 'reject'): Command => ({
  type: 'add_message',
  text,
  requestId: null,
  fileIds: [],
  run,
  whenBusy,
  by: null,
});

/** Returns the command that creates a Thread: by a person with `externalRef`, or by a service token with `client_external_ref`. */
const create = ({ attributed }: { attributed: boolean }): Command => ({
  type: 'create_thread',
  agentId: ulid(),
  organizationId: ulid(),
  kind: 'cattle',
  userId: `it's "user" 😀`,
  owner: { personId: ulid(), serviceTokenId: attributed ? ulid() : null },
  clientExternalRef: attributed ? `"ticket" \\ 😀` : undefined,
  externalRef: attributed ? undefined : { value: `"ticket" \\ 😀`, tokenId: ulid() },
});

const tool: ToolCall = {
  toolCallId: 'call',
  toolName: 'tool',
  title: 'Tool',
  toolInput: { n: 1.5, deep: { a: [null] } },
};
const facts: RecordedFact[] = [
  { type: 'assistant.thinking_added', data: { text: 'Hm' } },
  { type: 'assistant.text_added', data: { text: 'Well' } },
  { type: 'tool.started', data: tool },
  {
    type: 'tool.completed',
    data: { toolCallId: 'call', toolName: 'tool', outcome: 'ok', summary: 's', result: 'r', durationMs: 1 },
  },
  { type: 'file.changed', data: { fileId: ulid() } },
  { type: 'assistant.message_added', data: { text: 'Well', toolCalls: [tool] } },
  { type: 'usage.recorded', data: { inputTokens: 1, outputTokens: 2 } },
];
const requests = ['one', 'two'].map((requestId) => ({ requestId, toolCallId: requestId }));
const decision = { type: 'decide_permission', requestId: 'one', decision: 'allow_once', by: 'person' } as const;

/** Returns the commands that lead a Thread to each state, one append each. `run` is the Run of the first message. */
function stories(run: string): Record<string, Command[]> {
  const first = { runId: run, attempt: 1 };
  const second = { runId: run, attempt: 2 };
  const start: Command[] = [
    message(newRun(run)),
    { type: 'claim_run', runId: run, dispatch: 1, holder: 'worker' },
    { type: 'start_run', ...first },
  ];
  const again: Command[] = [
    ...start,
    { type: 'hand_over_run', ...first },
    { type: 'claim_run', runId: run, dispatch: 2, holder: 'worker 2' },
    { type: 'start_run', ...second },
  ];
  const work: Command = { type: 'record', ...first, facts };
  const finalOutput = { text: 'Well', warnings: [] };
  const interrupt: Command = { type: 'interrupt', runId: null, by: 'person' };
  const fail: Command = { type: 'fail_run', ...first, error: runError('provider_auth'), jitter: 0 };
  const wait: Command = { type: 'wait_for_decisions', ...first, requests };
  const follow = message(newRun(), 'And then?', 'enqueue');
  return {
    empty: [],
    attributed: [message(newRun(run))],
    queued: [message(newRun(run))],
    booting: start.slice(0, 2),
    running: [...start, work],
    completed: [...start, work, { type: 'complete_run', ...first, finalOutput }],
    'running again': [...again, { type: 'record', ...second, facts }],
    'to be retried': [...start, { type: 'fail_run', ...first, error: runError('provider_unavailable'), jitter: 0 }],
    failed: [...start, work, fail],
    retried: [message(newRun(run)), interrupt, { type: 'retry_run', runId: run, run: newRun() }],
    waiting: [...start, wait, decision],
    resumed: [...start, wait, decision, { ...decision, requestId: 'two', decision: 'reject_once' }],
    'in line': [...start, follow, message(newRun(), 'And then?', 'enqueue')],
    followed: [...start, follow, { type: 'complete_run', ...first, finalOutput: null }],
    archived: [{ type: 'archive' }],
    titled: [message(newRun(run), 'Hm'), { type: 'set_title', title: 'Hello' }],
    unarchived: [{ type: 'archive' }, { type: 'unarchive' }, { type: 'attach_file', fileId: ulid() }],
    terminated: [...start, { type: 'terminate_thread' }],
    'waiting to start': [...start, { ...message(newRun()), whenBusy: 'interrupt' } as Command],
    expired: [message(newRun(run)), { type: 'expire_run', runId: run, limit: 'queue', dispatch: 1, attempt: 0 }],
  };
}

export interface Seeded {
  threadId: string;
  /** The id of the first Run. */
  runId: string;
}

export const STORIES = Object.keys(stories(''));

/** Creates a Thread in the state. */
export async function seedThread({ handler }: Fixture, story: string): Promise<Seeded> {
  const [threadId, runId] = [ulid(), ulid()];
  const commands = stories(runId)[story];
  if (commands === undefined) throw new Error(`there is no story of a Thread that is ${story}`);
  const created = create({ attributed: story === 'attributed' });
  for (const command of [created, ...commands]) await apply(handler, threadId, command);
  return { threadId, runId };
}

/** Creates a Thread in each state. */
export async function seedThreads(on: Fixture): Promise<Seeded[]> {
  return Promise.all(STORIES.map((story) => seedThread(on, story)));
}

/** Applies the command, or throws. */
export async function apply(handler: CommandHandler, threadId: string, command: Command): Promise<void> {
  const result = await handler.handle({ threadId, commands: [command] });
  if (result.outcome !== 'appended') throw new Error(`not appended: ${JSON.stringify(result)}`);
}

/** Milliseconds between two Threads of a writer. Without a pause the writers outrun the reader, which then never ends. */
const PACE_MS = 20;

/** Appends to new Threads until it is stopped. The returned function stops it and returns the number of appends. */
export function appendUntilStopped(on: Fixture, streams: number): () => Promise<number> {
  let stopped = false;
  const write = async (): Promise<number> => {
    let appends = 0;
    while (!stopped) {
      const { threadId, runId } = await seedThread(on, STORIES[appends % STORIES.length] ?? 'empty');
      await on.handler.handle({ threadId, commands: [{ type: 'record', runId, attempt: 1, facts }] });
      appends++;
      await delay(PACE_MS);
    }
    return appends;
  };
  const writers = Promise.all(Array.from({ length: streams }, write));
  return async () => {
    stopped = true;
    return (await writers).reduce((sum, appends) => sum + appends, 0);
  };
}
