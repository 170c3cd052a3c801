import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import type { Pool } from 'pg';
import { AccessStore } from '#access';
import { createAgent, publishAgentVersion, type AgentManifestInput, type NewAgent } from '#agents';
import type {
  AgentRecord,
  ErrorEnvelope,
  RunSummary,
  ThreadEventLogEntry,
  ThreadLinks,
  ThreadSummary,
} from '#contract';
import { CommandHandler } from '#event-store';
import type { Command, RecordedFact } from '#domain';
import { CONFIG, createLogger, loadConfig, newId, openDatabase, type Config, type Logger } from '#platform';
import { asOwner, createTestDatabase } from '#testing';
import { ApiModule } from './api.module.ts';
import { AnswerCheck } from './http/answer-check.testing.ts';
import { createApi, listen } from './start-api.ts';

/** A typed matcher: the matchers of Jest are `any`. */
export const holding = (fields: object): unknown => expect.objectContaining(fields);

export interface Reply {
  status: number;
  headers: Headers;
  text: string;
  /** The parsed body, or null without one. It is checked against the OpenAPI document. */
  json: Answered;
}

/** The fields of all answers. The OpenAPI document says which answer has which; `call` checks it. */
export interface Answered {
  thread: ThreadSummary;
  run: RunSummary;
  links: ThreadLinks;
  acceptedAt: string;
  events: AnsweredEvent[];
  warnings: unknown[];
  truncated: boolean;
  runs: RunSummary[];
  nextCursor: string | null;
  agent: AgentRecord;
  error: ErrorEnvelope['error'];
}

/** An entry of the log, or the result of a sent event. */
export type AnsweredEvent = Omit<ThreadEventLogEntry, 'type'> & {
  type: string;
  requestId: string | null;
  run: RunSummary;
};

export interface Call {
  token?: string | null;
  body?: unknown;
  /** Sent as multipart/form-data instead of `body`. */
  form?: FormData;
  headers?: Record<string, string>;
}

/** The API of a test file: real HTTP, a separate database on real PostgreSQL, an organization, people and agents. */
export class ApiUnderTest {
  readonly access: AccessStore;
  readonly handler: CommandHandler;
  private readonly check: AnswerCheck;

  private constructor(
    readonly app: NestFastifyApplication,
    /** The connections of the spec, as the owner of the database. They can alter tables, and change and delete events. */
    readonly pool: Pool,
    readonly url: string,
    readonly databaseUrl: string,
    private readonly drop: () => Promise<void>,
    /** The ids and the token that every test starts with. */
    readonly organizationId: string,
    readonly personId: string,
    readonly token: string,
    readonly agentId: string,
  ) {
    this.access = new AccessStore(pool);
    this.handler = app.get(CommandHandler);
    this.check = new AnswerCheck({ compatibility: app.get<Config>(CONFIG).COMPATIBILITY_FIELDS === 'on' });
  }

  static async start({ settings, logger = SILENT, through }: Start = {}): Promise<ApiUnderTest> {
    const database = await createTestDatabase();
    const databaseUrl = (await through?.(database.url)) ?? database.url;
    const env = { DATABASE_URL: databaseUrl, PORT: '0', RATE_LIMIT_PER_MINUTE: '1000000000' };
    const config: Config = { ...loadConfig(env), ...settings };
    const app = await createApi(ApiModule.forRoot(config, logger), config, logger);
    const url = await listen(app, config, logger);
    const owner = await openDatabase({
      url: asOwner(config.DATABASE_URL!),
      applicationName: 'spec',
      maxConnections: 3,
    });
    const { pool } = owner;
    const access = new AccessStore(pool);
    const organizationId = await access.createOrganization('Acme');
    const personId = await access.createPerson('Ada');
    await access.addMember(organizationId, personId);
    const { token } = await access.mintToken({ kind: 'person', personId, name: 'test' });
    const agentId = await newAgent(pool, { organizationId, ownerPersonId: personId });
    return new ApiUnderTest(
      app,
      pool,
      url,
      database.url,
      async () => {
        await owner.close();
        await database.drop();
      },
      organizationId,
      personId,
      token,
      agentId,
    );
  }

  async stop(): Promise<void> {
    await this.app.close();
    await this.drop();
  }

  /** Creates a published echo agent of the organization. */
  newAgent(agent: Partial<NewAgent> = {}, manifest: Partial<AgentManifestInput> = {}): Promise<string> {
    return newAgent(this.pool, { organizationId: this.organizationId, ...agent }, manifest);
  }

  async newPerson({ member = true } = {}): Promise<{ personId: string; token: string }> {
    const personId = await this.access.createPerson('Bob');
    if (member) await this.access.addMember(this.organizationId, personId);
    const { token } = await this.access.mintToken({ kind: 'person', personId, name: 'test' });
    return { personId, token };
  }

  async newThread({ text, agentId = this.agentId, token = this.token }: ThreadWanted = {}): Promise<string> {
    const input = text === undefined ? {} : { input: { type: 'user.message', content: [{ type: 'text', text }] } };
    const { json } = await this.post(`/agents/${agentId}/threads`, { token, body: { userId: 'u1', ...input } });
    return json.thread.id;
  }

  /** Applies the commands of a worker to a Thread, without a worker. */
  async happen(threadId: string, ...commands: Command[]): Promise<void> {
    const outcome = await this.handler.handle({ threadId, commands });
    if (outcome.outcome !== 'appended') throw new Error(JSON.stringify(outcome));
  }

  /** Claims and starts the Run with attempt 1. */
  startRun(threadId: string, runId: string): Promise<void> {
    return this.happen(
      threadId,
      { type: 'claim_run', runId, dispatch: 1, holder: 'test' },
      { type: 'start_run', runId, attempt: 1 },
    );
  }

  /** Starts the Run, which then requests confirmation of a tool call. Returns the id of the request. */
  async ask(threadId: string, runId: string): Promise<string> {
    const call = { toolCallId: newId(), toolName: 'send_note', title: 'Send a note', toolInput: {} };
    const requestId = newId();
    const claim = { runId, attempt: 1 };
    const facts: RecordedFact[] = [
      { type: 'assistant.message_added', data: { text: '', toolCalls: [call] } },
      { type: 'tool.confirmation_requested', data: { ...call, requestId } },
    ];
    const requests = [{ requestId, toolCallId: call.toolCallId }];
    await this.startRun(threadId, runId);
    await this.happen(
      threadId,
      { ...claim, type: 'record', facts },
      { ...claim, type: 'wait_for_decisions', requests },
    );
    return requestId;
  }

  async completeRun(threadId: string, runId: string): Promise<void> {
    await this.startRun(threadId, runId);
    const finalOutput = { text: 'done', warnings: [] };
    await this.happen(threadId, { type: 'complete_run', runId, attempt: 1, finalOutput });
  }

  get(path: string, call?: Call): Promise<Reply> {
    return this.call('GET', path, call);
  }

  post(path: string, call?: Call): Promise<Reply> {
    return this.call('POST', path, call);
  }

  /** Sends `body` as JSON, or unchanged if it is a string. Throws if the answer does not match the OpenAPI document. */
  async call(
    method: string,
    path: string,
    { token = this.token, body, form, headers = {} }: Call = {},
  ): Promise<Reply> {
    const response = await fetch(`${this.url}${path}`, {
      method,
      headers: {
        ...(token === null ? {} : { authorization: `Bearer ${token}` }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
      ...(form === undefined ? {} : { body: form }),
    });
    const text = await response.text();
    const json = text === '' ? null : (JSON.parse(text) as unknown);
    this.check.check(method, path, response, json);
    return { status: response.status, headers: response.headers, text, json: json as Answered };
  }

  /** Counts the stored rows. A refused request must not change the counts. */
  async rowCounts(): Promise<Record<string, number>> {
    const tables = ['events', 'streams', 'thread_summaries', 'run_summaries', 'run_work', 'idempotency_keys', 'files'];
    const counts = tables.map((table) => `(select count(*)::integer from ${table}) as ${table}`);
    const { rows } = await this.pool.query<Record<string, number>>(`select ${counts.join(', ')}`);
    return rows[0]!;
  }
}

const SILENT = createLogger('fatal', 'spool api test');

export interface Start {
  settings?: Partial<Config>;
  logger?: Logger;
  /** Returns the URL by which the API connects to the database. */
  through?: (databaseUrl: string) => Promise<string>;
}

interface ThreadWanted {
  /** The first message. Without it, the Thread has no Run. */
  text?: string;
  agentId?: string;
  token?: string;
}

async function newAgent(pool: Pool, agent: Omit<NewAgent, 'manifest'>, more: Partial<AgentManifestInput> = {}) {
  const manifest = { name: 'echo', description: 'Says it again.', harness: { name: 'echo' }, ...more };
  const agentId = await createAgent(pool, { ...agent, manifest });
  await publishAgentVersion(pool, agentId, manifest);
  return agentId;
}
