import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { AccessStore, type MintedToken } from '#access';
import { createAgent, publishAgentVersion, type AgentManifestInput, type NewAgent } from '#agents';
import { QueueControls } from '#run-queue';
import { eventually } from '#testing';
import { startSystem, type ApiProcess, type System } from '../../support/system.ts';
import { Client, type Entry, type FileRecord, type Reply, type Run, type Thread } from './client.ts';

export interface Person {
  personId: string;
  token: string;
  tokenId: string;
}

/** What a Thread of a test is to be like. */
export interface ThreadWanted {
  text?: string;
  agentId?: string;
  userId?: string;
  resources?: object[];
  client?: Client;
}

export interface UploadWanted {
  client?: Client;
  agentId?: string;
  headers?: Record<string, string>;
}

/** No test of the suite but those of the limit itself is to meet it; one address has all of them. */
const MANY_REQUESTS = '1000000';

/** How often what is deleted or too old is swept, milliseconds. */
const HOUSEKEEPING_MS = '300';

/** The system that all areas of the suite share: a worker and an API, people, tokens and agents as a test needs them. */
export class World {
  private system!: System;
  api!: ApiProcess;
  client!: Client;
  access!: AccessStore;
  organizationId = '';
  agentId = '';
  owner!: Person;
  /** Where the bytes of files are. */
  blobFolder = '';
  private readonly clients: Client[] = [];

  constructor(
    readonly backend: string,
    private readonly queueUrl: () => string | undefined,
  ) {}

  async start(): Promise<void> {
    this.blobFolder = await mkdtemp(join(tmpdir(), 'spool-contract-'));
    const queueUrl = this.queueUrl();
    this.system = await startSystem({
      env: {
        BLOB_URL: pathToFileURL(this.blobFolder).href,
        DATA_DIR: this.blobFolder,
        RATE_LIMIT_PER_MINUTE: MANY_REQUESTS,
        HOUSEKEEPING_MS,
        // Unset: the default is what is tested.
        STREAMS_PER_TOKEN: '',
        STREAMS_PER_THREAD: '',
        STREAMS_PER_PROCESS: '',
        WORKER_SLOTS: '64',
        LEASE_MS: '1000',
      },
      ...(queueUrl === undefined ? {} : { queueUrl }),
    });
    this.access = new AccessStore(this.pool);
    this.organizationId = await this.access.createOrganization('Acme');
    this.owner = await this.newPerson();
    this.agentId = await this.newAgent();
    [this.api] = await Promise.all([this.system.startApi(), this.system.startWorker()]);
    this.client = await this.track(Client.connect(this.api.caller.baseUrl, this.owner.token));
  }

  async stop(): Promise<void> {
    this.clients.forEach((client) => client.close());
    await this.system.stop();
    await rm(this.blobFolder, { recursive: true, force: true });
  }

  get pool(): System['database']['pool'] {
    return this.system.database.pool;
  }

  get database(): System['database'] {
    return this.system.database;
  }

  get databaseUrl(): string {
    return this.system.databaseUrl;
  }

  get queue(): { name: string; url: string } {
    const { QUEUE_NAME = '', QUEUE_URL = '' } = this.system.env;
    return { name: QUEUE_NAME, url: QUEUE_URL };
  }

  get controls(): QueueControls {
    return new QueueControls(this.pool, this.queue.name);
  }

  /** Another API process with settings of its own; the caller ends it. */
  async startApi(env: Record<string, string>): Promise<{ api: ApiProcess; client: Client }> {
    const api = await this.system.startApi(env);
    const client = await this.track(Client.connect(api.caller.baseUrl, this.owner.token));
    return { api, client };
  }

  startWorker(): ReturnType<System['startWorker']> {
    return this.system.startWorker();
  }

  as(token: string): Client {
    const client = this.client.as(token);
    this.clients.push(client);
    return client;
  }

  async newPerson({ organizationId = this.organizationId, member = true } = {}): Promise<Person> {
    const personId = await this.access.createPerson('Ada');
    if (member) await this.access.addMember(organizationId, personId);
    const { token, id: tokenId } = await this.mintFor(personId);
    return { personId, token, tokenId };
  }

  mintFor(personId: string, expiresAt?: Date): Promise<MintedToken> {
    const expiry = expiresAt === undefined ? {} : { expiresAt };
    return this.access.mintToken({ kind: 'person', personId, name: 'contract', ...expiry });
  }

  mintService(agentIds: string[], organizationId = this.organizationId): Promise<MintedToken> {
    return this.access.mintToken({ kind: 'service', organizationId, agentIds, name: 'contract' });
  }

  /** A published echo agent. */
  async newAgent(manifest: Partial<AgentManifestInput> = {}, agent: Partial<NewAgent> = {}): Promise<string> {
    const full = {
      name: 'echo',
      description: 'Says it again.',
      harness: { name: 'echo', allowCrash: true },
      ...manifest,
    };
    const agentId = await createAgent(this.pool, {
      organizationId: this.organizationId,
      ownerPersonId: this.owner.personId,
      ...agent,
      manifest: full,
    });
    await publishAgentVersion(this.pool, agentId, full);
    return agentId;
  }

  async changeAgent(agentId: string, columns: string): Promise<void> {
    await this.pool.query(`update agents set ${columns} where id = $1`, [agentId]);
  }

  create({
    text,
    agentId = this.agentId,
    userId = 'user-1',
    resources,
    client = this.client,
  }: ThreadWanted = {}): Promise<Reply> {
    return client.post(`/agents/${agentId}/threads`, {
      userId,
      ...(text === undefined ? {} : { input: message(text) }),
      ...(resources === undefined ? {} : { resources }),
    });
  }

  async newThread(wanted?: ThreadWanted): Promise<Thread> {
    const { status, json, text } = await this.create(wanted);
    if (status !== 201) throw new Error(`no Thread was made: ${status} ${text}`);
    return json.thread;
  }

  /** A Thread whose Run waits for a person: active, and without a worker. */
  async waitingThread(wanted: ThreadWanted = {}): Promise<{ thread: Thread; run: Run; asked: Entry }> {
    const thread = await this.newThread({ ...wanted, text: wanted.text ?? '/confirm' });
    const asked = await this.entry(thread.id, 'tool.confirmation.required', wanted.client);
    const { json } = await (wanted.client ?? this.client).get(`/threads/${thread.id}`);
    return { ...json, asked };
  }

  async endedThread(wanted: ThreadWanted = {}): Promise<{ thread: Thread; run: Run }> {
    const thread = await this.newThread({ ...wanted, text: wanted.text ?? 'hello' });
    return this.ended(thread.id, wanted.client);
  }

  /** Once its newest Run has ended. */
  ended(threadId: string, client = this.client): Promise<{ thread: Thread; run: Run }> {
    return this.becomes(
      threadId,
      ({ run }) => run !== null && TERMINAL.includes(run.status),
      'its Run has ended',
      client,
    );
  }

  becomes(
    threadId: string,
    is: (read: { thread: Thread; run: Run }) => boolean,
    what: string,
    client = this.client,
  ): Promise<{ thread: Thread; run: Run }> {
    return eventually(
      async () => {
        const { json } = await client.get(`/threads/${threadId}`);
        if (is(json)) return json;
        throw new Error(JSON.stringify(json));
      },
      { what, timeoutMs: 20_000 },
    );
  }

  send(threadId: string, ...events: object[]): Promise<Reply> {
    return this.client.post(`/threads/${threadId}/events`, { events });
  }

  async log(threadId: string, query = 'limit=1000', client = this.client): Promise<Entry[]> {
    return (await client.get(`/threads/${threadId}/events?${query}`)).json.events;
  }

  entry(threadId: string, type: string, client = this.client): Promise<Entry> {
    return eventually(async () => (await this.log(threadId, undefined, client)).find((entry) => entry.type === type), {
      what: `the log has ${type}`,
      timeoutMs: 20_000,
    });
  }

  /** Uploads a draft. */
  upload(
    name: string,
    bytes: string | Buffer,
    { client = this.client, agentId = this.agentId, headers = {} }: UploadWanted = {},
  ): Promise<Reply> {
    const body = new FormData();
    body.append('file', new File([bytes], name));
    return client.post(`/agents/${agentId}/files`, undefined, { body, headers });
  }

  /** A draft, as a resource names it. */
  async draft(
    name: string,
    bytes: string | Buffer = name,
    wanted?: UploadWanted,
  ): Promise<{ id: string; resource: object }> {
    const { status, text, json } = await this.upload(name, bytes, wanted);
    if (status !== 201) throw new Error(`no draft was made: ${status} ${text}`);
    return { id: json.file.id, resource: { type: 'file', file_id: json.file.id } };
  }

  attach(threadId: string, name: string, bytes: string | Buffer, client = this.client): Promise<Reply> {
    const contentBase64 = Buffer.from(bytes).toString('base64');
    return client.post(`/threads/${threadId}/files`, { name, contentType: 'text/plain', contentBase64 });
  }

  async files(threadId: string): Promise<FileRecord[]> {
    return (await this.client.get(`/threads/${threadId}/files`)).json.files;
  }

  /** How many files of the blob store have these bytes in them. */
  async blobsWith(bytes: string): Promise<number> {
    const entries = await readdir(this.blobFolder, { recursive: true, withFileTypes: true });
    let count = 0;
    for (const entry of entries) {
      if (!entry.isFile()) continue;
      // Gone meanwhile: the sweeper is at work.
      const content = await readFile(join(entry.parentPath, entry.name)).catch(() => null);
      if (content?.includes(bytes) === true) count++;
    }
    return count;
  }

  /** How much is stored: a refused request must not change it. */
  async rowCounts(tables = ['thread_summaries', 'run_summaries', 'idempotency_keys', 'files']): Promise<unknown> {
    const counts = tables.map((table) => `(select count(*)::integer from ${table}) as ${table}`);
    return (await this.pool.query<object>(`select ${counts.join(', ')}`)).rows[0];
  }

  private async track(client: Promise<Client>): Promise<Client> {
    this.clients.push(await client);
    return client;
  }
}

const TERMINAL = ['completed', 'failed', 'cancelled', 'expired'];

/** A ULID of nothing. */
export const UNKNOWN = '01ARZ3NDEKTSV4RRFFQ69G5FAV';

export const message = (...texts: string[]): object => ({
  type: 'user.message',
  content: texts.map((text) => ({ type: 'text', text })),
});

export const userMessage = (text: string, more: object = {}): object => ({ type: 'user_message', text, ...more });

export const decide = (requestId: string, decision = 'allow_once'): object => ({
  type: 'permission_decision',
  requestId,
  decision,
});

export const interrupt = (more: object = {}): object => ({ type: 'user_interrupt', ...more });

/** The cause of an error answer, from `Spool-Error-Reason`. */
export const reasonOf = ({ headers }: Reply): string | null => headers.get('spool-error-reason');

/** What a refusal is, for comparing. */
export const refusal = ({ status, code }: Reply): [number, string | undefined] => [status, code];

/** RFC 3339 in any zone. */
export const DATE_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/;
export const ULID = /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/;
