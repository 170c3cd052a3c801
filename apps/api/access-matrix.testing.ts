import { mkdtemp, rm } from 'node:fs/promises';
import { Agent, request, type IncomingMessage } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { NewToken } from '#access';
import { createAgent, publishAgentVersion } from '#agents';
import { operations, type Operation } from '#contract';
import type { Command } from '#domain';
import { absentThread } from '#event-store';
import { DiskBlobStore, newBlobKey } from '#files';
import { newId } from '#platform';
import { AnswerCheck } from './http/answer-check.testing.ts';
import { ApiUnderTest } from './api-under-test.testing.ts';

/** The world of the access matrix: callers of every kind, agents in every state, Threads and drafts of every owner. */

export type Organization = 'acme' | 'other';

export interface MatrixCaller {
  name: string;
  kind: 'person' | 'service' | 'operator';
  token: string;
  tokenId: string;
  personId: string | null;
  memberOf: readonly Organization[];
  /** Agents whose `invited` access names the person, or which the service token lists. */
  agents: ReadonlySet<string>;
}

/** The state of an agent. `never published` is also off and without a version. */
export type AgentState =
  | 'live'
  | 'unpublished'
  | 'never published'
  | 'off'
  | 'no live version'
  | 'deleted'
  | 'never published, deleted';

export interface MatrixAgent {
  name: string;
  id: string;
  organization: Organization;
  access: 'organization' | 'invited';
  state: AgentState;
  ownerPersonId: string | null;
}

export interface Owner {
  personId: string | null;
  serviceTokenId: string | null;
}

export type Lifecycle = 'active' | 'archived' | 'terminated';

/** A Thread with a cancelled Run and an attached file, or a draft (`lifecycle` is `draft`), which is only a file. */
export interface Thing {
  what: string;
  agent: MatrixAgent;
  owner: Owner;
  lifecycle: Lifecycle | 'draft';
  threadId: string;
  runId: string;
  fileId: string;
}

export type OperationName = keyof typeof operations;

export interface Route {
  operation: OperationName;
  method: string;
  /** The path below `/api/v1`. */
  path: (ids: Ids) => string;
  /** `all`: the path names no resource. */
  of: 'agents' | 'threads' | 'files' | 'all';
  body: string | null;
  contentType: string | null;
  /** Whether each request has a new Idempotency-Key. */
  hasKey: boolean;
  /** Returns the text that a success contains. */
  shows: (ids: Ids) => string;
}

export interface Ids {
  agentId: string;
  threadId: string;
  runId: string;
  fileId: string;
}

export interface Answered {
  status: number;
  code: string | null;
  headers: Headers;
  text: string;
}

/** The columns of `agents` that put a live agent into each state. */
const STATES: Record<AgentState, string> = {
  live: 'published = true',
  unpublished: 'published = false',
  'never published': 'published = false, api_enabled = false, live_version = null',
  off: 'api_enabled = false',
  'no live version': 'live_version = null',
  deleted: 'deleted_at = now()',
  'never published, deleted': 'published = false, api_enabled = false, live_version = null, deleted_at = now()',
};

/** The tables that a refused request could have changed. */
const TABLES = [
  ...['events', 'streams', 'thread_summaries', 'run_summaries', 'run_work', 'idempotency_keys', 'files'],
  ...['unclaimed_blobs', 'agents', 'agent_versions', 'agent_people', 'memberships', 'token_agents'],
];

interface Sending {
  query?: string;
  body?: [content: string, type: string];
  shows: (ids: Ids) => string;
  alsoHead?: boolean;
}

const BYTES = 'bytes of the file';
const json = (body: object): [string, string] => [JSON.stringify(body), 'application/json'];
const upload = '--b\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\nhello\r\n--b--\r\n';
const OK = '{"ok":true}';
const say = { type: 'user_message', text: 'hi' };

/** The query and body that are sent to each operation. A new operation must be added here. */
const SENT: Record<OperationName, Sending> = {
  createThread: {
    body: json({ userId: 'u', input: { type: 'user.message', content: [{ type: 'text', text: 'hi' }] } }),
    shows: ({ agentId }) => `"agent_id":"${agentId}"`,
  },
  listThreads: { query: '?archived=all', shows: () => '"nextCursor":null' },
  listAllThreads: { query: '?archived=all', shows: () => '"nextCursor":null' },
  uploadFile: { body: [upload, 'multipart/form-data; boundary=b'], shows: () => '"size":5' },
  createBrowserToken: { body: json({ userId: 'u', verbs: ['read'] }), shows: () => '"token":"spool_bt_' },
  getAgent: { shows: ({ agentId }) => agentId },
  getThread: { shows: ({ threadId }) => `"id":"${threadId}"` },
  updateThread: { body: json({ title: 'Mine' }), shows: () => '"title":"Mine"' },
  deleteThread: { shows: () => OK },
  archiveThread: { shows: () => OK },
  unarchiveThread: { shows: () => OK },
  sendEvents: { body: json({ events: [say] }), shows: ({ threadId }) => `"id":"${threadId}"` },
  listEvents: { shows: ({ runId }) => runId },
  streamEvents: { shows: ({ runId }) => runId },
  listMessages: { shows: ({ runId }) => `"runId":"${runId}"` },
  listRuns: { shows: ({ runId }) => `{"runs":[{"id":"${runId}"` },
  getRun: { shows: ({ runId }) => `{"run":{"id":"${runId}"` },
  retryRun: { shows: () => '"trigger":"resume"' },
  attachFile: {
    body: json({ name: 'a.txt', contentType: 'text/plain', contentBase64: 'aGVsbG8=' }),
    shows: () => '"size":5',
  },
  listFiles: { shows: ({ fileId }) => `{"files":[{"id":"${fileId}"` },
  detachFile: { shows: () => OK },
  getFile: { shows: ({ fileId }) => `{"file":{"id":"${fileId}"` },
  deleteFile: { shows: () => OK },
  getFileLink: { shows: () => '/file-links/' },
  readContent: { shows: () => BYTES, alsoHead: true },
};

export const SENT_OPERATIONS = Object.keys(SENT) as OperationName[];

export const ROUTES: Route[] = SENT_OPERATIONS.flatMap((operation) => {
  const { method, path, takesIdempotencyKey }: Operation = operations[operation];
  const { query = '', body = [null, null], alsoHead, shows } = SENT[operation];
  const route = {
    operation,
    method,
    path: (ids: Ids) => path.replaceAll(/\{(\w+)\}/g, (_, name: keyof Ids) => ids[name]) + query,
    of: path.includes('{') ? (path.split('/')[1] as Route['of']) : ('all' as const),
    body: body[0],
    contentType: body[1],
    hasKey: takesIdempotencyKey === true,
    shows,
  };
  return alsoHead ? [route, { ...route, method: 'HEAD', shows: () => '' }] : [route];
});

/** Returns ids that do not exist. */
export const unknownIds = (): Ids => ({ agentId: newId(), threadId: newId(), runId: newId(), fileId: newId() });

export class MatrixWorld {
  readonly callers: MatrixCaller[] = [];
  readonly agents: MatrixAgent[] = [];
  /** Complete invalid `Authorization` headers, each after its defect. */
  readonly nobodies: [string, string | null][] = [];
  /** The owners of things that callers must not see. They send no request. */
  otherPersonId = '';
  otherServiceTokenId = '';
  private readonly organizations: Record<Organization, string>;
  private readonly check = new AnswerCheck({ compatibility: false });
  private readonly connections = new Agent({ keepAlive: true, maxSockets: 32 });

  private constructor(
    readonly api: ApiUnderTest,
    private readonly folder: string,
    private readonly blobs: DiskBlobStore,
    other: string,
  ) {
    this.organizations = { acme: api.organizationId, other };
  }

  /** Creates the world without sending a request, so that the API caches nothing in an earlier state. */
  static async make(): Promise<MatrixWorld> {
    const folder = await mkdtemp(join(tmpdir(), 'spool-matrix-'));
    const settings = {
      BLOB_URL: pathToFileURL(folder).href,
      STREAMS_PER_THREAD: 10_000,
      STREAMS_PER_PERSON_TOKEN: 10_000,
      RATE_LIMIT_STORE: 'process',
      BROWSER_TOKEN_KEYS: `k:${'a'.repeat(43)}=`,
    } as const;
    const api = await ApiUnderTest.start({ settings });
    const other = await api.access.createOrganization('Other');
    const world = new MatrixWorld(api, folder, new DiskBlobStore(folder), other);
    await world.makeAgents();
    await world.makePeople();
    await world.makeServices();
    await world.makeNobodies();
    return world;
  }

  async stop(): Promise<void> {
    this.connections.destroy();
    await this.api.stop();
    await rm(this.folder, { recursive: true });
  }

  /** Puts each agent into its state. Called last, once all Threads and drafts exist. */
  async enterStates(): Promise<void> {
    for (const { id, state } of this.agents) {
      await this.api.pool.query(`update agents set ${STATES[state]} where id = $1`, [id]);
    }
  }

  private async makeAgents(): Promise<void> {
    const ownerPersonId = this.api.personId;
    for (const state of Object.keys(STATES) as AgentState[]) {
      await this.makeAgent({ organization: 'acme', access: 'organization', state, ownerPersonId });
      // This state tests only the order of the checks, so one agent is enough.
      if (state === 'never published, deleted') continue;
      await this.makeAgent({ organization: 'acme', access: 'invited', state, ownerPersonId });
    }
    await this.makeAgent({ organization: 'other', access: 'organization', state: 'live', ownerPersonId: null });
    // The owner is not a member of its organization.
    await this.makeAgent({ organization: 'other', access: 'invited', state: 'live', ownerPersonId });
  }

  private async makeAgent(agent: Omit<MatrixAgent, 'id' | 'name'>): Promise<void> {
    const { organization, access, state, ownerPersonId } = agent;
    const manifest = { name: 'echo', description: '', harness: { name: 'echo' } };
    const organizationId = this.organizations[organization];
    const id = await createAgent(this.api.pool, { organizationId, ownerPersonId, access, manifest });
    await publishAgentVersion(this.api.pool, id, manifest);
    this.agents.push({ ...agent, id, name: `${organization}, ${access}, ${state}` });
  }

  private async makePeople(): Promise<void> {
    const invited = this.agents.filter(({ access }) => access === 'invited').map(({ id }) => id);
    await this.addPerson('owner', ['acme'], [], this.api.personId);
    await this.addPerson('named member', ['acme'], invited);
    await this.addPerson('member, not named', ['acme'], []);
    await this.addPerson('member of both', ['acme', 'other'], []);
    await this.addPerson('named, member no more', [], invited);
    await this.addPerson('of the other organization', ['other'], []);
    await this.addPerson('of no organization', [], []);
    this.otherPersonId = await this.api.access.createPerson('Eve');
    await this.api.access.addMember(this.organizations.acme, this.otherPersonId);
  }

  private async addPerson(name: string, memberOf: Organization[], invitedTo: string[], known?: string): Promise<void> {
    const { access, pool } = this.api;
    const personId = known ?? (await access.createPerson(name));
    for (const organization of memberOf) await access.addMember(this.organizations[organization], personId);
    const sql = 'insert into agent_people (agent_id, person_id) select unnest($1::text[]), $2';
    await pool.query(sql, [invitedTo, personId]);
    const { id: tokenId, token } = await access.mintToken({ kind: 'person', personId, name });
    this.callers.push({ name, kind: 'person', token, tokenId, personId, memberOf, agents: new Set(invitedTo) });
  }

  private async makeServices(): Promise<void> {
    const { acme, other } = this.organizations;
    const of = (wanted: Organization) =>
      this.agents.filter((agent) => agent.organization === wanted).map(({ id }) => id);
    await this.addService('service', acme, of('acme'));
    // This token lists an agent outside of the matrix.
    await this.addService('service that lists it not', acme, [this.api.agentId]);
    await this.addService('service of the other organization', other, of('other'));
    const { access } = this.api;
    const wanted = { kind: 'service', organizationId: acme, agentIds: of('acme'), name: 'bystander' } as const;
    this.otherServiceTokenId = (await access.mintToken(wanted)).id;
    const { id: tokenId, token } = await access.mintToken({ kind: 'operator', name: 'operator' });
    this.callers.push({
      ...{ name: 'operator', kind: 'operator', token, tokenId },
      ...{ personId: null, memberOf: [], agents: new Set<string>() },
    });
  }

  private async addService(name: string, organizationId: string, agentIds: string[]): Promise<void> {
    const wanted = { kind: 'service', organizationId, agentIds, name, allowAttribution: true } as const;
    const { id: tokenId, token } = await this.api.access.mintToken(wanted);
    const rest = { personId: null, memberOf: [], agents: new Set(agentIds) };
    this.callers.push({ name, kind: 'service', token, tokenId, ...rest });
  }

  /** Creates the invalid tokens. If valid, each would belong to the owner, or to a service with access to the agent. */
  private async makeNobodies(): Promise<void> {
    const { access, pool, personId, organizationId, agentId } = this.api;
    const person = { kind: 'person', personId, name: 'n' } as const;
    const service = { kind: 'service', organizationId, agentIds: [agentId], name: 'n' } as const;
    const mint = async (wanted: NewToken) => access.mintToken(wanted);
    for (const wanted of [person, service]) {
      const revoked = await mint(wanted);
      await access.revokeToken(revoked.id);
      this.nobodies.push([`revoked ${wanted.kind}`, `Bearer ${revoked.token}`]);
      const expired = await mint({ ...wanted, expiresAt: new Date(Date.now() - 1_000) });
      this.nobodies.push([`expired ${wanted.kind}`, `Bearer ${expired.token}`]);
    }
    const forgotten = await mint(person);
    await pool.query('delete from tokens where id = $1', [forgotten.id]);
    const valid = this.callers[0]!.token;
    const misspelt = valid.slice(0, -1) + (valid.endsWith('A') ? 'B' : 'A');
    this.nobodies.push(
      ['unknown, right checksum', `Bearer ${forgotten.token}`],
      ['wrong checksum', `Bearer ${misspelt}`],
      ['legacy form', 'Bearer sk-live-0123456789abcdef0123456789abcdef'],
      ['no Bearer', `Basic ${valid}`],
      ['no scheme', valid],
      ['empty', 'Bearer '],
      ['none', null],
    );
  }

  /** Creates a Thread or a draft by commands, which check no access. */
  async makeThing(wanted: Pick<Thing, 'agent' | 'owner' | 'lifecycle' | 'what'>): Promise<Thing> {
    const { agent, owner, lifecycle, what } = wanted;
    const { threadId, runId, fileId } = unknownIds();
    if (lifecycle === 'draft') {
      const { personId: owner_person_id, serviceTokenId: owner_service_token_id } = owner;
      await this.storeFile(fileId, { agent_id: agent.id, owner_person_id, owner_service_token_id });
      return { what, agent, owner, lifecycle, threadId, runId, fileId };
    }
    const organizationId = this.organizations[agent.organization];
    const limits = { queueMs: 600_000, workMs: 600_000, waitMs: 600_000, maxLosses: 3 };
    const run = { runId, agentVersion: 1, limits };
    const commands: Command[] = [
      { type: 'create_thread', agentId: agent.id, organizationId, kind: 'cattle', userId: 'u', owner },
      { type: 'attach_file', fileId },
      { type: 'add_message', text: 'hi', requestId: null, fileIds: [], run, whenBusy: 'reject', by: null },
      { type: 'interrupt', runId: null, by: null },
      ...(lifecycle === 'archived' ? [{ type: 'archive' } as const] : []),
      ...(lifecycle === 'terminated' ? [{ type: 'terminate_thread' } as const] : []),
    ];
    const made = await this.api.handler.handle({ threadId, from: absentThread(threadId), commands });
    if (made.outcome !== 'appended') throw new Error(JSON.stringify(made));
    await this.storeFile(fileId, { thread_id: threadId });
    return { what, agent, owner, lifecycle, threadId, runId, fileId };
  }

  private async storeFile(id: string, columns: Record<string, string | null>): Promise<void> {
    const key = newBlobKey();
    const { sha256, size } = await this.blobs.put(key, Buffer.from(BYTES));
    const names = Object.keys(columns);
    await this.api.pool.query(
      `insert into files (id, kind, name, size, sha256, blob_key, ${names.join(', ')})
       values ($1, 'attachment', 'a.txt', $2, $3, $4, ${names.map((_, i) => `$${i + 5}`).join(', ')})`,
      [id, size, sha256, key, ...Object.values(columns)],
    );
  }

  /** Returns the number of rows of each table, and a digest of them. */
  async contents(): Promise<Record<string, string>> {
    const digest = (table: string) =>
      `(select count(*) || ' rows ' || md5(coalesce(string_agg(t::text, '|' order by t::text), '')) from ${table} t) as ${table}`;
    const { rows } = await this.api.pool.query<Record<string, string>>(`select ${TABLES.map(digest).join(', ')}`);
    return rows[0]!;
  }

  /** Sends a request. Checks a JSON answer against the OpenAPI document. Closes a stream after its first entry. */
  async ask(route: Route, ids: Ids, authorization: string | null): Promise<Answered> {
    const path = route.path(ids);
    const options = {
      method: route.method,
      agent: this.connections,
      timeout: 10_000,
      headers: {
        ...(authorization === null ? {} : { authorization }),
        ...(route.contentType === null ? {} : { 'content-type': route.contentType }),
        ...(route.hasKey ? { 'idempotency-key': newId() } : {}),
      },
    };
    const { response, text } = await send(`${this.api.url}${path}`, options, route.body);
    const status = response.statusCode ?? 0;
    const headers = new Headers(Object.entries(response.headers).map(([name, value]) => [name, String(value)]));
    const isJson = headers.get('content-type')?.startsWith('application/json') === true && text !== '';
    const parsed = isJson ? (JSON.parse(text) as { error?: { code: string } }) : null;
    const isOther = route.method === 'HEAD' || (status < 400 && !isJson);
    if (!isOther) this.check.check(route.method, path, { status, headers } as Response, parsed);
    return { status, code: parsed?.error?.code ?? null, headers, text };
  }
}

type Sent = { response: IncomingMessage; text: string };

function send(url: string, options: object, body: string | null): Promise<Sent> {
  return new Promise((resolve, reject) => {
    const sent = request(url, options, (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (piece: string) => {
        text += piece;
        // The first frame with an entry.
        if (!/^event: thread\.event\n(?:.+\n)+\n/m.test(text)) return;
        resolve({ response, text });
        sent.destroy();
      });
      response.once('end', () => resolve({ response, text }));
      response.once('error', reject);
    });
    sent.once('timeout', () => sent.destroy(new Error('no answer within 10 s')));
    sent.once('error', reject);
    sent.end(body ?? undefined);
  });
}
