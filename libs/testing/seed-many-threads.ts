import type { Pool } from 'pg';
import { encodeTime, ulid } from 'ulid';
import type { Command, NewRun, RecordedFact } from '#domain';
import type { CommandHandler } from '#event-store';
import { copyThread, type ModelThread } from './copy-threads.ts';

export interface ManyThreads {
  organizationId: string;
  personId: string;
  agentIds: string[];
  /** A Thread of two completed Runs. */
  threadId: string;
  threads: number;
  /** Words in the title of every one. */
  titleWords: string;
}

interface Wanted {
  /** That have ended; most with two Runs, of 20 events about. */
  threads?: number;
  /** So many more each with a Run that is running, waits for a person, and is ready. */
  live?: number;
}

const DIGITS = '00000000';
const TITLE_WORDS = 'about the invoice';
const AGENTS = 40;
const TOKENS = 1_000;
const AUDIT_ENTRIES = 10_000;
/** The Threads are of the last 30 days, a tenth of them of the last 45 minutes. Seconds. */
const OLDEST_S = 30 * 86_400;
const YOUNGEST_S = 120;
/** Nobody works on what is running: its leases must not end while it is looked at. */
const LEASE_MS = 86_400_000;

/** How often each ended Thread is, of 20. */
const ENDED = { done: 14, tools: 2, unavailable: 1, refused: 1, cancelled: 1, expired: 1 } as const;
const LIVE = ['running', 'waiting', 'queued'] as const;
type Kind = keyof typeof ENDED | (typeof LIVE)[number];

/**
 * Fills a migrated database as one is after a while: an organization, agents, tokens, an audit log, and Threads of all kinds with
 * all their rows, so that every page shows something and `verify` finds nothing wrong. Ten thousand Threads take some seconds: one
 * of each kind is made by commands, and copied by SQL.
 */
export async function seedManyThreads(pool: Pool, { threads = 10_000, live = 20 }: Wanted = {}): Promise<ManyThreads> {
  // Only here: specs that seed nothing must not load all that.
  const { CommandHandler: Handler, ThreadStore } = await import('#event-store');
  const owners = await seedOwners(pool);
  const now = Date.now();
  const clock = { now };
  const handler = new Handler({ store: new ThreadStore(pool), now: () => clock.now, leaseMs: LEASE_MS });
  const { agentIds } = owners;
  const copy = async (kind: Kind, numbers: number[], ageOf: (number: number) => number): Promise<ModelThread> => {
    clock.now = now;
    const model = await makeModel(handler, kind, owners, clock);
    const ages = numbers.map(ageOf);
    const times = ages.map((age) => encodeTime(Math.round(now - age * 1_000)));
    await copyThread(pool, model, { numbers, ages, times, agentIds });
    return model;
  };
  const all = Array.from({ length: threads }, (_, i) => i + 1);
  const kinds = Object.entries(ENDED).flatMap(([kind, times]) => Array<Kind>(times).fill(kind as Kind));
  const models = new Map<Kind, ModelThread>();
  for (const kind of new Set(kinds)) {
    const numbers = all.filter((number) => kinds[number % kinds.length] === kind);
    models.set(
      kind,
      await copy(kind, numbers, (number) => YOUNGEST_S + Math.round(OLDEST_S * (number / threads) ** 3)),
    );
  }
  for (const [i, kind] of LIVE.entries()) {
    const first = threads + 1 + i * live;
    await copy(
      kind,
      Array.from({ length: live }, (_, n) => first + n),
      () => 0,
    );
  }
  // As they would be had they been made one after the other.
  for (const table of ['thread_summaries', 'run_summaries']) await pool.query(`cluster ${table} using ${table}_pkey`);
  await pool.query('vacuum analyze');
  const { organizationId, personId } = owners;
  const threadId = models.get('done')!.threadId;
  return { organizationId, personId, agentIds, threadId, threads, titleWords: TITLE_WORDS };
}

interface Owners {
  organizationId: string;
  personId: string;
  agentIds: string[];
}

async function seedOwners(pool: Pool): Promise<Owners> {
  const [{ AccessStore }, { createAgent, publishAgentVersion }] = await Promise.all([
    import('#access'),
    import('#agents'),
  ]);
  const access = new AccessStore(pool);
  const organizationId = await access.createOrganization('Acme of many');
  const personId = await access.createPerson('Jo of many');
  await access.addMember(organizationId, personId);
  const agentIds: string[] = [];
  for (let i = 1; i <= AGENTS; i++) {
    const manifest = { name: `echo-${i}`, description: 'Says it again.', harness: { name: 'echo' } };
    const agentId = await createAgent(pool, { organizationId, ownerPersonId: personId, manifest });
    await publishAgentVersion(pool, agentId, manifest);
    agentIds.push(agentId);
  }
  const time = encodeTime(Date.now() - OLDEST_S * 1_000);
  await pool.query(
    `insert into tokens (id, kind, hash, name, person_id)
     select $1 || lpad(i::text, 16, '0'), 'person', sha256(($1 || i)::bytea), 'laptop ' || i, $2
     from generate_series(1, $3::integer) as i`,
    [time, personId, TOKENS],
  );
  await pool.query(
    `insert into audit_entries (id, occurred_at, actor_kind, actor_id, actor_name, action, target_id, organization_id)
     select $1 || lpad(i::text, 16, '0'), now() - $4 * interval '1 second' * (1 - i / $5::float8), 'operator', 'operator ' || i % 5,
            'Grace', case i % 3 when 0 then 'token.created' when 1 then 'run.retried' else 'thread.deleted' end,
            $1 || lpad((i % 1000)::text, 16, '0'), $2
     from generate_series(1, $3::integer) as i`,
    [time, organizationId, AUDIT_ENTRIES, OLDEST_S, AUDIT_ENTRIES],
  );
  return { organizationId, personId, agentIds };
}

const newRun = (runId: string): NewRun => ({
  runId,
  agentVersion: 1,
  limits: { queueMs: 86_400_000, workMs: 86_400_000, waitMs: 604_800_000, maxLosses: 3, providerRetryMs: 0 },
});

/** Each command is an append of its own, some seconds after the one before. */
async function makeModel(handler: CommandHandler, kind: Kind, owners: Owners, clock: { now: number }) {
  const threadId = ulid();
  const runIds = kind === 'done' || kind === 'tools' ? [ulid(), ulid()] : [ulid()];
  const { organizationId, personId, agentIds } = owners;
  const agentId = agentIds[0]!;
  const owner = { personId, serviceTokenId: null };
  // Each kind has a token of its own, because the models have the same digits.
  const externalRef = { value: `order-${DIGITS}`, tokenId: ulid() };
  const commands: Command[] = [
    { type: 'create_thread', agentId, organizationId, kind: 'cattle', userId: `user-${DIGITS}`, owner, externalRef },
    ...runIds.flatMap((runId) => storyOf(kind, runId)),
  ];
  for (const command of commands) {
    const result = await handler.handle({ threadId, commands: [command] });
    if (result.outcome !== 'appended') throw new Error(JSON.stringify([command, result]));
    clock.now += 1_500;
  }
  return { threadId, runIds, agentId, digits: DIGITS };
}

function storyOf(kind: Kind, runId: string): Command[] {
  const claimed = { runId, attempt: 1 };
  const add: Command = {
    ...({ type: 'add_message', requestId: null, fileIds: [], whenBusy: 'reject', by: null } as const),
    text: `Question ${DIGITS} ${TITLE_WORDS}: what is left to pay, and until when?`,
    run: newRun(runId),
  };
  const begin: Command[] = [
    add,
    { type: 'claim_run', runId, dispatch: 1, holder: 'worker-1' },
    { type: 'start_run', ...claimed },
  ];
  const record = (facts: RecordedFact[]): Command => ({ type: 'record', ...claimed, facts });
  const answer = 'Forty-two, until Friday. The invoice of last month is paid. ';
  const says: RecordedFact[] = [
    { type: 'assistant.message_added', data: { text: answer, toolCalls: [] } },
    { type: 'usage.recorded', data: { inputTokens: 1_200, outputTokens: 80 } },
  ];
  const piece: RecordedFact = { type: 'assistant.text_added', data: { text: answer } };
  const tool = { toolCallId: 'call_1', toolName: 'invoices.read', title: 'Read invoices', toolInput: { month: 7 } };
  const result = {
    ...tool,
    outcome: 'ok' as const,
    summary: '3 invoices',
    result: 'x'.repeat(2_000),
    durationMs: 1_500,
  };
  const { title: _, toolInput: __, ...completed } = result;
  const uses: RecordedFact[] = [
    { type: 'assistant.message_added', data: { text: '', toolCalls: [tool] } },
    { type: 'tool.started', data: tool },
    { type: 'tool.completed', data: completed },
  ];
  const end: Command = { type: 'complete_run', ...claimed, finalOutput: { text: answer, warnings: [] } };
  const asks: RecordedFact[] = [
    { type: 'assistant.message_added', data: { text: '', toolCalls: [tool] } },
    { type: 'tool.confirmation_requested', data: { ...tool, requestId: 'request_1' } },
  ];
  const fail = (code: 'provider_unavailable' | 'provider_auth', retryable: boolean): Command => ({
    ...({ type: 'fail_run', ...claimed, jitter: 0 } as const),
    error: { code, message: 'The model provider did not answer as it should.', retryable },
  });
  const stories: Record<Kind, Command[]> = {
    done: [...begin, record([piece, ...says]), end],
    tools: [...begin, record(uses), record([piece, piece, ...says]), end],
    unavailable: [...begin, record([piece]), fail('provider_unavailable', true)],
    refused: [...begin, fail('provider_auth', false)],
    cancelled: [...begin, record([piece]), { type: 'interrupt', runId, by: null }],
    expired: [add, { type: 'expire_run', runId, limit: 'queue', dispatch: 1, attempt: 0 }],
    running: [...begin, record([piece])],
    waiting: [
      ...begin,
      record(asks),
      { type: 'wait_for_decisions', ...claimed, requests: [{ requestId: 'request_1', toolCallId: 'call_1' }] },
    ],
    queued: [add],
  };
  return stories[kind];
}
