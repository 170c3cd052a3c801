import { once } from 'node:events';
import { request, type ClientRequest, type IncomingMessage } from 'node:http';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { createParser } from 'eventsource-parser';
import type { Pool } from 'pg';
import { AccessStore } from '#access';
import { createAgent, publishAgentVersion } from '#agents';
import type { ErrorEnvelope, ThreadEventLogEntry } from '#contract';
import type { Command } from '#domain';
import { CommandHandler, ThreadStore } from '#event-store';
import { LiveHub } from '#live';
import { createLogger, DATABASE, loadConfig, newId, type Config, type Database } from '#platform';
import { createTestDatabase, eventually, type TestDatabase } from '#testing';
import { ApiModule } from '../api.module.ts';
import { createApi, listen } from '../start-api.ts';
import { StreamService } from './stream-service.ts';

/** Streams over real HTTP, on a separate real database. Commands change the Threads; there is no worker. */
export class StreamsUnderTest {
  readonly pool: Pool;
  readonly access: AccessStore;
  readonly handler: CommandHandler;
  readonly store: ThreadStore;
  private readonly streams = new Set<TestStream>();
  organizationId = '';
  personId = '';
  agentId = '';
  token = '';

  private constructor(
    readonly app: NestFastifyApplication,
    readonly url: string,
    private readonly database: TestDatabase,
  ) {
    this.pool = app.get<Database>(DATABASE).pool;
    this.access = new AccessStore(this.pool);
    this.handler = app.get(CommandHandler);
    this.store = app.get(ThreadStore);
  }

  static async start(settings: Partial<Config> = {}): Promise<StreamsUnderTest> {
    const database = await createTestDatabase();
    const config: Config = { ...loadConfig({ DATABASE_URL: database.url, PORT: '0' }), ...settings };
    const logger = createLogger('silent', 'test');
    const app = await createApi(ApiModule.forRoot(config, logger), config, logger);
    const world = new StreamsUnderTest(app, await listen(app, config, logger), database);
    world.organizationId = await world.access.createOrganization('Acme');
    const { personId, token } = await world.newPerson();
    Object.assign(world, { personId, token, agentId: await world.newAgent() });
    return world;
  }

  /** Closes the open streams of a test, and fails if the process keeps any of them. */
  async release(): Promise<void> {
    for (const stream of this.streams) stream.destroy();
    this.streams.clear();
    const counts = (): boolean => this.openStreams === 0 && this.readers === 0;
    await eventually(counts, { what: 'every stream and reader is released' });
  }

  async stop(): Promise<void> {
    await this.app.close();
    await this.database.drop();
  }

  get openStreams(): number {
    return this.app.get(StreamService).openStreams.size;
  }

  get readers(): number {
    return this.app.get(LiveHub).readers;
  }

  async newPerson(): Promise<{ personId: string; token: string; tokenId: string }> {
    const personId = await this.access.createPerson('Ada');
    await this.access.addMember(this.organizationId, personId);
    const { id: tokenId, token } = await this.access.mintToken({ kind: 'person', personId, name: 'test' });
    return { personId, token, tokenId };
  }

  async newAgent(): Promise<string> {
    const manifest = { name: 'echo', description: 'Says it again.', harness: { name: 'echo' } };
    const agentId = await createAgent(this.pool, { organizationId: this.organizationId, manifest });
    await publishAgentVersion(this.pool, agentId, manifest);
    return agentId;
  }

  async happen(threadId: string, ...commands: Command[]): Promise<void> {
    const outcome = await this.handler.handle({ threadId, commands });
    if (outcome.outcome !== 'appended') throw new Error(JSON.stringify(outcome));
  }

  async newThread({ personId = this.personId, agentId = this.agentId } = {}): Promise<string> {
    const threadId = newId();
    const { organizationId } = this;
    const owner = { personId, serviceTokenId: null };
    await this.happen(threadId, { type: 'create_thread', agentId, organizationId, kind: 'cattle', userId: 'u', owner });
    return threadId;
  }

  /** Starts a Run with attempt 1. */
  async startRun(threadId: string, text = 'hi'): Promise<string> {
    const limits = { queueMs: 600_000, workMs: 3_600_000, waitMs: 600_000, maxLosses: 3 };
    const run = { runId: newId(), agentVersion: 1, limits };
    const whenBusy = 'reject';
    await this.happen(threadId, { type: 'add_message', text, requestId: null, fileIds: [], run, whenBusy, by: null });
    const { runId } = run;
    await this.happen(threadId, { type: 'claim_run', runId, dispatch: 1, holder: 'w' });
    await this.happen(threadId, { type: 'start_run', runId, attempt: 1 });
    return runId;
  }

  record(threadId: string, runId: string, ...texts: string[]): Promise<void> {
    const facts = texts.map((text) => ({ type: 'assistant.text_added', data: { text } }) as const);
    return this.happen(threadId, { type: 'record', runId, attempt: 1, facts });
  }

  complete(threadId: string, runId: string): Promise<void> {
    return this.happen(threadId, { type: 'complete_run', runId, attempt: 1, finalOutput: null });
  }

  async log(threadId: string): Promise<string[]> {
    const { events } = await this.store.readLogAfter(threadId, '', { maxEvents: 1_000_000 });
    return events.map(({ id }) => id);
  }

  async openStream(threadId: string, query = '', wanted: Wanted = {}): Promise<TestStream> {
    const { token = this.token, headers = {} } = wanted;
    const path = `/threads/${threadId}/events/stream${query}`;
    const authorization = token === null ? {} : { authorization: `Bearer ${token}` };
    const sent = request(`${this.url}${path}`, { agent: false, headers: { ...authorization, ...headers } });
    sent.end();
    const [response] = (await once(sent, 'response')) as [IncomingMessage];
    const stream = new TestStream(sent, response);
    this.streams.add(stream);
    return stream;
  }
}

interface Wanted {
  token?: string | null;
  headers?: Record<string, string>;
}

/** The client's end of a stream. */
export class TestStream {
  text = '';
  readonly ids: string[] = [];
  readonly entries: ThreadEventLogEntry[] = [];
  readonly comments: string[] = [];
  retryMs: number | null = null;
  /** The last frame that is not an entry. */
  last: { event: string | undefined; data: unknown } | null = null;
  /** True if the whole body was received. */
  isComplete = false;
  isClosed = false;

  constructor(
    private readonly sent: ClientRequest,
    readonly response: IncomingMessage,
  ) {
    const parser = createParser({
      onEvent: ({ id, event, data }) => {
        const parsed: unknown = JSON.parse(data);
        if (event !== 'thread.event') return void (this.last = { event, data: parsed });
        this.entries.push(parsed as ThreadEventLogEntry);
        this.ids.push(id ?? '');
      },
      onComment: (comment) => this.comments.push(comment),
      onRetry: (retryMs) => (this.retryMs = retryMs),
    });
    response.setEncoding('utf8');
    response.on('data', (text: string) => {
      this.text += text;
      parser.feed(text);
    });
    response.on('error', () => undefined);
    sent.on('error', () => undefined);
    response.on('close', () => {
      this.isComplete = response.complete;
      this.isClosed = true;
    });
  }

  get status(): number | undefined {
    return this.response.statusCode;
  }

  get error(): ErrorEnvelope['error'] | undefined {
    return (this.last?.data as ErrorEnvelope | undefined)?.error;
  }

  untilHas(count: number, timeoutMs = 15_000): Promise<unknown> {
    return eventually(() => this.ids.length >= count, { what: `the stream has shown ${count} entries`, timeoutMs });
  }

  untilClosed(): Promise<unknown> {
    return eventually(() => this.isClosed, { what: 'the stream ends' });
  }

  destroy(): void {
    this.sent.destroy();
  }
}
