import { request } from 'node:http';
import { ulid } from 'ulid';
import { AccessStore } from '#access';
import { adminOperations } from '#contract';
import { eventually } from '#testing';
import type { ApiProcess, System } from './system.ts';

export const MIB = 1024 * 1024;

/** JSON bodies just below the limit of 8 MiB. */
export const BODY_BYTES = 8 * MIB - 1_024;

/** The largest text of one message, characters. */
export const MESSAGE_CHARACTERS = 128_000;

export interface Sent {
  method: string;
  /** With the origin. */
  url: string;
  token: string;
  body?: string | Buffer | undefined;
  headers?: Record<string, string>;
}

export interface Got {
  /** 0: the connection ended without an answer. */
  status: number;
  text: string;
}

/** Sends one request, or a few that belong together, on one of several connections. */
export type Act = (connection: number) => Promise<Got>;

/** Sends one request on a connection of its own, and reads its answer to the end. Never rejects. */
function sendWhole({ method, url, token, body, headers = {} }: Sent): Promise<Got> {
  return new Promise((resolve) => {
    const lost = (): void => resolve({ status: 0, text: '' });
    const sending = request(
      url,
      {
        method,
        agent: false,
        headers: {
          // Asked to close, the server hangs up after its answer, while a body that it refused is still being sent.
          connection: 'keep-alive',
          authorization: `Bearer ${token}`,
          'content-type': 'application/json',
          ...headers,
        },
      },
      (answer) => {
        const chunks: Buffer[] = [];
        answer.on('data', (chunk: Buffer) => chunks.push(chunk));
        answer.on('end', () => resolve({ status: answer.statusCode ?? 0, text: Buffer.concat(chunks).toString() }));
        answer.on('error', lost);
      },
    );
    // Once it has its answer, no request hears that the server hangs up on the rest of the body.
    sending.once('socket', (socket) => socket.on('error', () => undefined));
    sending.on('error', lost).end(body);
  });
}

/** An installation that holds as much as it may, for requests with the largest answers. */
export interface LargestWorld {
  system: System;
  api: ApiProcess;
  organizationId: string;
  personId: string;
  /** Its messages interrupt each other. */
  agentId: string;
  tokenId: string;
  /** Has the largest messages, one after the other, and the largest outputs of Runs. It is idle, and its last Run can be retried. */
  threadId: string;
  runId: string;
  /** Has as many files as it may. */
  filesThreadId: string;
  fileId: string;
  /** A Run of another Thread that waits for people, and what it asks. */
  waitingThreadId: string;
  requestId: string;
  /** A Run with the most events that are shown. */
  longRunId: string;
  public(method: string, path: string, body?: Sent['body'], headers?: Sent['headers']): Promise<Got>;
  /** Sends a request with a service token. */
  service(method: string, path: string, body?: Sent['body']): Promise<Got>;
  admin(method: string, path: string, body?: Sent['body']): Promise<Got>;
}

export async function makeLargestWorld(system: System, api: ApiProcess): Promise<LargestWorld> {
  const { baseUrl } = api.caller;
  const callPublic: LargestWorld['public'] = (method, path, body, headers = {}) =>
    sendWhole({ method, url: baseUrl + path, token: system.personToken, body, headers });
  const adminUrl = `${new URL(baseUrl).origin}/admin/v1`;
  const callAdmin: LargestWorld['admin'] = (method, path, body) =>
    sendWhole({ method, url: adminUrl + path, token: system.operatorToken, body });
  const { rows } = await system.database.pool.query<Pick<LargestWorld, 'organizationId' | 'personId' | 'tokenId'>>(
    `select organization_id as "organizationId", owner_person_id as "personId",
            (select id from tokens where kind = 'person') as "tokenId" from agents where id = $1`,
    [system.agentId],
  );
  const { organizationId } = rows[0]!;
  const wanted = { kind: 'service', organizationId, agentIds: [system.agentId], name: 'app' } as const;
  const { token } = await new AccessStore(system.database.pool).mintToken(wanted);
  const callService: LargestWorld['service'] = (method, path, body) =>
    sendWhole({ method, url: baseUrl + path, token, body });
  const calls = { system, api, public: callPublic, service: callService, admin: callAdmin };
  const known = { ...calls, ...rows[0]!, agentId: system.agentId };
  const waiting = await makeWaitingRun(calls);
  const large = await makeLargeThread(calls);
  const files = await makeFiles(calls);
  const longRunId = await makeLongRun(calls);
  await fillControlPlane(known);
  await system.database.pool.query('analyze');
  return { ...known, ...waiting, ...large, ...files, longRunId };
}

type Calls = Pick<LargestWorld, 'system' | 'api' | 'public' | 'admin'>;

async function post(calls: Calls, path: string, body: unknown): Promise<AnyAnswer> {
  return ok(await calls.public('POST', path, JSON.stringify(body)));
}

async function create(calls: Calls, content: string[]): Promise<{ threadId: string; runId: string }> {
  const input = { type: 'user.message', content: content.map((text) => ({ type: 'text', text })) };
  const { thread, run } = await post(calls, `/agents/${calls.system.agentId}/threads`, { userId: 'u', input });
  return { threadId: thread.id, runId: run.id };
}

const interrupt = (calls: Calls, threadId: string) =>
  post(calls, `/threads/${threadId}/events`, { events: [{ type: 'user_interrupt' }] });

/** A Run that waits for people, by a worker that is gone afterwards. */
async function makeWaitingRun(calls: Calls): Promise<Pick<LargestWorld, 'waitingThreadId' | 'requestId'>> {
  const worker = await calls.system.startWorker();
  const { threadId } = await create(calls, [`/confirm 20 ${'w'.repeat(30_000)}`]);
  const status = async (): Promise<string> => ok(await calls.public('GET', `/threads/${threadId}`)).run.status;
  await eventually(async () => (await status()) === 'waiting_input', {
    what: 'a Run waits for people',
    timeoutMs: 60_000,
  });
  await worker.kill('SIGKILL');
  const { rows } = await calls.system.database.pool.query<{ id: string }>(
    `select data ->> 'requestId' as id from events where thread_id = $1 and type = 'tool.confirmation_requested' limit 1`,
    [threadId],
  );
  return { waitingThreadId: threadId, requestId: rows[0]!.id };
}

async function makeLargeThread(calls: Calls): Promise<Pick<LargestWorld, 'threadId' | 'runId'>> {
  const { threadId } = await create(calls, parts('x', BODY_BYTES));
  for (const letter of ['y', 'é', '"', '€']) {
    const message = { type: 'user_message', text: letter.repeat(MESSAGE_CHARACTERS) };
    await post(calls, `/threads/${threadId}/events`, { events: Array<object>(12).fill(message) });
  }
  await interrupt(calls, threadId);
  // As a model may answer.
  await calls.system.database.pool.query(
    `update run_summaries set final_output = jsonb_build_object('text', repeat('é"\n', 349525), 'warnings', '[]'::jsonb)
     where thread_id = $1`,
    [threadId],
  );
  return { threadId, runId: ok(await calls.public('GET', `/threads/${threadId}`)).run.id };
}

async function makeFiles(calls: Calls): Promise<Pick<LargestWorld, 'filesThreadId' | 'fileId'>> {
  const { threadId } = await create(calls, ['files']);
  await interrupt(calls, threadId);
  for (let i = 0; i < 99; i++) {
    const file = { name: `${'n'.repeat(250)}${i}`, contentType: 'text/plain', contentBase64: 'aGk=' };
    await post(calls, `/threads/${threadId}/files`, file);
  }
  // The largest within a request.
  const contentBase64 = Buffer.alloc(5 * MIB, 7).toString('base64');
  const { file } = await post(calls, `/threads/${threadId}/files`, { name: 'l', contentType: 'x/y', contentBase64 });
  return { filesThreadId: threadId, fileId: file.id };
}

async function makeLongRun(calls: Calls): Promise<string> {
  const run = await create(calls, ['long']);
  await interrupt(calls, run.threadId);
  await addToolCalls(calls.system, run, 5_000);
  return run.runId;
}

/** The parts of answers that are used here. */
interface AnyAnswer {
  thread: { id: string };
  run: { id: string; status: string };
  file: { id: string };
  agents: { agentId: string }[];
}

/** As many parts of the largest text as fit, with a text that takes one byte. */
export function parts(letter: string, bytes: number): string[] {
  const one = 32_000;
  const room = Buffer.byteLength(JSON.stringify(letter.repeat(one))) + 30;
  return Array<string>(Math.floor((bytes - 200) / room)).fill(letter.repeat(one));
}

function ok({ status, text }: Got): AnyAnswer {
  if (status < 200 || status > 299) throw new Error(`${status} ${text.slice(0, 500)}`);
  return JSON.parse(text) as AnyAnswer;
}

/** Adds calls of tools to a Run, as a worker would have. Makes the Run's times span them. */
async function addToolCalls({ database: { pool } }: System, run: { threadId: string; runId: string }, calls: number) {
  const { rows } = await pool.query<{ version: number }>('select version from streams where thread_id = $1', [
    run.threadId,
  ]);
  const from = rows[0]!.version;
  const events = Array.from({ length: 2 * calls }, (_, i) => {
    const call = { toolCallId: `call ${i >> 1}`, toolName: 'tool' };
    const started = {
      type: 'tool.started',
      data: { ...call, title: 't'.repeat(100), toolInput: {}, idempotent: true },
    };
    const completed = {
      type: 'tool.completed',
      data: { ...call, summary: 's', durationMs: 1, outcome: 'ok', result: 'r' },
    };
    return { ...(i % 2 === 0 ? started : completed), version: from + 1 + i, id: ulid(Date.now() + i) };
  });
  await pool.query(
    `insert into events (thread_id, version, id, type, schema_version, data, run_id, attempt, public, occurred_at)
     select $1, version, id, type, 1, data, $2, 1, true, now()
     from jsonb_to_recordset($3) as e (version integer, id text, type text, data jsonb)`,
    [run.threadId, run.runId, JSON.stringify(events)],
  );
  const ending = [run.threadId, from + events.length, events.at(-1)!.id];
  await pool.query(
    'update streams set version = $2, last_event_id = $3, last_occurred_at = now() where thread_id = $1',
    ending,
  );
}

/** Pages of the largest rows: agents, tokens, people, Threads and entries of the audit log. */
async function fillControlPlane({
  admin,
  system,
  organizationId,
}: Pick<LargestWorld, 'admin' | 'system' | 'organizationId'>) {
  const post = async (name: 'applyManifests' | 'createPerson' | 'mintToken', body: unknown) =>
    ok(await admin('POST', adminOperations[name].path, JSON.stringify(body)));
  const manifests = Array.from({ length: 100 }, (_, i) => ({
    ...{ name: `agent ${i} ${'n'.repeat(240)}`, description: 'd'.repeat(4_000), harness: { name: 'echo' } },
  }));
  const { agents } = await post('applyManifests', { organizationId, manifests, publish: true });
  const agentIds = agents.map(({ agentId }) => agentId);
  for (let i = 0; i < 100; i++) {
    const name = `${i} ${'n'.repeat(250)}`;
    await post('createPerson', { name, organizationIds: [organizationId] });
    await post('mintToken', { kind: 'service', organizationId, agentIds, name });
  }
  const { pool } = system.database;
  await pool.query('insert into agent_people (agent_id, person_id) select $1, id from people on conflict do nothing', [
    system.agentId,
  ]);
  await pool.query(
    `insert into thread_summaries (thread_id, agent_id, organization_id, user_id, kind, owner_person_id, status, title, created_at, updated_at, archived, external_ref)
     select lpad(i::text, 26, '0'), agent_id, organization_id, repeat('u', 250) || i, kind, owner_person_id, 'IDLE', repeat('€', 255), now(), now(), false, null
     from (select * from thread_summaries limit 1) t, generate_series(1, 200) i`,
  );
}
