import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { Client } from 'pg';
import { ERROR_REASONS, REASON_HEADER, type ErrorReason } from '#contract';
import { newId } from '#platform';
import { eventually } from '#testing';
import { ApiUnderTest, type Reply } from './api-under-test.testing.ts';

// Provokes each value of Spool-Error-Reason over HTTP, with real PostgreSQL and disk. `api.call` checks it against the catalogue.

const UNKNOWN = '01ARZ3NDEKTSV4RRFFQ69G5FAV';
const LIMITS = {
  BODY_LIMIT_BYTES: 10_000,
  FILE_LIMIT_BYTES: 1_000,
  INLINE_FILE_LIMIT_BYTES: 100,
  FILES_PER_THREAD: 1,
  DRAFTS_PER_TOKEN: 1,
};

let api: ApiUnderTest;
let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'spool-reasons-'));
  api = await ApiUnderTest.start({ settings: { BLOB_URL: pathToFileURL(folder).href, ...LIMITS } });
});
afterAll(async () => {
  await api.stop();
  await rm(folder, { recursive: true });
});

const seen = new Set<string>();

/** Returns the stored rows and bytes. */
async function stored(): Promise<object> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const blobs = entries.filter((entry) => entry.isFile()).map(({ name }) => name);
  return { ...(await api.rowCounts()), blobs: blobs.toSorted() };
}

/** Expects the reason, with its code and status in the catalogue. */
function expectReason({ status, headers, json }: Reply, reason: ErrorReason): void {
  expect([headers.get(REASON_HEADER), status, json.error.code]).toEqual([
    reason,
    ERROR_REASONS[reason].status,
    ERROR_REASONS[reason].code,
  ]);
  seen.add(reason);
}

const message = (text: string, more: object = {}) => ({ type: 'user_message', text, ...more });
const interrupt = (more: object = {}) => ({ type: 'user_interrupt', ...more });
const decide = (requestId: string) => ({ type: 'permission_decision', requestId, decision: 'allow_once' });
const send = (threadId: string, ...events: object[]) => api.post(`/threads/${threadId}/events`, { body: { events } });
const create = (agentId = api.agentId, key?: string, userId = 'u') =>
  api.post(`/agents/${agentId}/threads`, {
    body: { userId },
    headers: key === undefined ? {} : { 'idempotency-key': key },
  });
const runOf = async (threadId: string) => (await api.get(`/threads/${threadId}`)).json.run.id;
const inline = (bytes = 'hello') => ({
  ...{ name: 'a.txt', contentType: 'text/plain' },
  contentBase64: Buffer.from(bytes).toString('base64'),
});
const attach = (threadId: string, body: object = inline()) => api.post(`/threads/${threadId}/files`, { body });

function upload(token = api.token, ...parts: [name: string, bytes: string][]): Promise<Reply> {
  const form = new FormData();
  for (const [name, bytes] of parts) form.append(name, new Blob([bytes]), 'a.txt');
  return api.post(`/agents/${api.agentId}/files`, { form, token });
}
const fileIdOf = (reply: Reply) => (reply.json as unknown as { file: { id: string } }).file.id;

describe('the shape of a request', () => {
  test.each<[ErrorReason, string, () => Promise<Reply>]>([
    ['invalid_field', 'a path', () => api.get('/threads/x')],
    ['invalid_field', 'a query', () => api.get(`/threads/${UNKNOWN}/events?limit=x`)],
    ['invalid_field', 'a body', () => api.post(`/agents/${api.agentId}/threads`, { body: { more: 1 } })],
    ['invalid_field', 'a key', () => create(api.agentId, 'k'.repeat(129))],
    ['invalid_url', 'a URL', () => api.get('/threads/%zz')],
    ['invalid_json', 'a body', () => api.post(`/agents/${api.agentId}/threads`, { body: '{' })],
    ['body_too_large', 'a body', () => create(api.agentId, undefined, 'x'.repeat(10_000))],
    [
      'unsupported_media_type',
      'a body',
      () => api.post(`/agents/${api.agentId}/threads`, { body: '', headers: { 'content-type': 'text/plain' } }),
    ],
    [
      'unsupported_media_type',
      'a body for an upload',
      () => api.post(`/threads/${UNKNOWN}/files`, { form: new FormData() }),
    ],
    [
      'body_compressed',
      'a body',
      () => api.post(`/agents/${api.agentId}/threads`, { body: {}, headers: { 'content-encoding': 'gzip' } }),
    ],
    ['path_not_found', 'an unknown path', () => api.get('/nope')],
    ['method_not_allowed', 'a method', () => api.call('PUT', `/threads/${UNKNOWN}`)],
  ])('%s: %s', async (reason, _, request) => {
    expectReason(await request(), reason);
  });

  test('invalid_field: Last-Event-ID', async () => {
    const threadId = await api.newThread();
    const headers = { 'last-event-id': 'x' };
    expectReason(await api.get(`/threads/${threadId}/events/stream`, { headers }), 'invalid_field');
  });

  test.each<[ErrorReason, string]>([
    ['invalid_http', 'GARBAGE\r\n\r\n'],
    ['host_missing', 'GET /api/v1/openapi.json HTTP/1.1\r\n\r\n'],
    ['host_repeated', 'GET /api/v1/openapi.json HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n'],
    ['unsupported_expectation', 'GET / HTTP/1.1\r\nHost: x\r\nExpect: a-miracle\r\n\r\n'],
    ['headers_too_large', `GET / HTTP/1.1\r\nHost: x\r\nA: ${'a'.repeat(100_000)}\r\n\r\n`],
  ])('%s: a request that cannot be read', async (reason, request) => {
    const [head = '', body = ''] = (await sendRaw(request)).split('\r\n\r\n');
    expect(head).toMatch(new RegExp(`^HTTP/1.1 ${ERROR_REASONS[reason].status} `));
    expect(head.toLowerCase()).toContain(`\r\n${REASON_HEADER.toLowerCase()}: ${reason}\r\n`);
    expect(JSON.parse(body)).toMatchObject({ error: { code: ERROR_REASONS[reason].code } });
    seen.add(reason);
  });
});

describe('access', () => {
  test('token_invalid for every defect of a token', async () => {
    for (const token of [null, 'x', `spool_pat_${'A'.repeat(48)}`]) {
      expectReason(await api.get(`/threads/${UNKNOWN}`, { token }), 'token_invalid');
    }
  });

  test('agent_forbidden, agent_not_found and the states of an Agent', async () => {
    const stranger = await api.newPerson({ member: false });
    expectReason(await api.get(`/agents/${api.agentId}`, stranger), 'agent_forbidden');
    expectReason(await create(UNKNOWN), 'agent_not_found');
    const states: [ErrorReason, string][] = [
      ['agent_not_published', 'published = false'],
      ['api_access_off', 'api_enabled = false'],
      ['api_access_off', 'api_enabled = false, live_version = null'],
      ['no_live_version', 'live_version = null'],
    ];
    for (const [reason, columns] of states) {
      const agentId = await api.newAgent();
      await api.pool.query(`update agents set ${columns} where id = $1`, [agentId]);
      expectReason(await create(agentId), reason);
    }
    const incapable = await api.newAgent({}, { harness: { name: 'missing' } });
    const threadId = await api.newThread({ agentId: incapable });
    expectReason(await send(threadId, message('hi')), 'agent_not_ready');
  });

  test('a hidden Thread, Run or file has the reason of one that does not exist', async () => {
    const stranger = await api.newPerson();
    const threadId = await api.newThread({ text: 'hi' });
    const fileId = fileIdOf(await attach(threadId));
    const runId = await runOf(threadId);
    const asked: [ErrorReason, hidden: string, path: (id: string) => string][] = [
      ['thread_not_found', threadId, (id) => `/threads/${id}`],
      ['thread_not_found', threadId, (id) => `/threads/${id}/events/stream`],
      ['thread_not_found', threadId, (id) => `/threads/${id}/runs/${runId}`],
      ['file_not_found', fileId, (id) => `/files/${id}`],
      ['file_not_found', fileId, (id) => `/files/${id}/content`],
    ];
    for (const [reason, hidden, path] of asked) {
      const replies = [await api.get(path(hidden), stranger), await api.get(path(UNKNOWN), stranger)];
      for (const reply of replies) expectReason(reply, reason);
      expect(replies[0]!.text).toBe(replies[1]!.text);
    }
    expectReason(await api.call('DELETE', `/threads/${threadId}`, stranger), 'thread_not_found');
    const other = await api.newThread({ text: 'hi' });
    for (const id of [runId, UNKNOWN]) {
      expectReason(await api.get(`/threads/${other}/runs/${id}`), 'run_not_found');
      expectReason(await send(other, interrupt({ runId: id })), 'run_not_found');
    }
  });
});

describe('the state of a Thread', () => {
  test('request_decided', async () => {
    const threadId = await api.newThread({ text: 'hi' });
    const requestId = await api.ask(threadId, await runOf(threadId));
    await send(threadId, decide(requestId));
    expectReason(await send(threadId, decide(requestId)), 'request_decided');
  });

  test('thread_busy, no_active_run and request_not_pending', async () => {
    const threadId = await api.newThread({ text: 'hi' });
    expectReason(await send(threadId, message('again')), 'thread_busy');
    expectReason(await api.post(`/threads/${threadId}/archive`), 'thread_busy');
    expectReason(await send(threadId, decide('r1')), 'request_not_pending');
    await api.completeRun(threadId, await runOf(threadId));
    expectReason(await send(threadId, interrupt()), 'no_active_run');
  });

  test('run_not_retryable', async () => {
    const threadId = await api.newThread({ text: 'hi' });
    const runId = await runOf(threadId);
    await api.completeRun(threadId, runId);
    expectReason(await api.post(`/threads/${threadId}/runs/${runId}/retry`), 'run_not_retryable');
  });

  test('too_many_queued_runs', async () => {
    const agentId = await api.newAgent({}, { whenBusy: 'enqueue' });
    const threadId = await api.newThread({ agentId, text: 'hi' });
    await send(threadId, ...Array.from({ length: 100 }, () => message('more')));
    expectReason(await send(threadId, message('too many')), 'too_many_queued_runs');
  });

  test('thread_archived and thread_terminated', async () => {
    const archived = await api.newThread();
    await api.happen(archived, { type: 'archive' });
    expectReason(await send(archived, message('hi')), 'thread_archived');
    expectReason(await attach(archived), 'thread_archived');
    const terminated = await api.newThread();
    await api.happen(terminated, { type: 'terminate_thread' });
    expectReason(await send(terminated, message('hi')), 'thread_terminated');
    expectReason(await api.post(`/threads/${terminated}/unarchive`), 'thread_terminated');
  });
});

describe('an Idempotency-Key', () => {
  test('key_reused: another request used the Idempotency-Key', async () => {
    await create(api.agentId, 'reused');
    const before = await stored();
    const reply = await create(api.agentId, 'reused', 'somebody else');
    expectReason(reply, 'key_reused');
    expect(reply.headers.get('retry-after')).toBeNull();
    const form = new FormData();
    form.append('file', new Blob(['hello']), 'a.txt');
    const headers = { 'idempotency-key': 'reused' };
    expectReason(await api.post(`/agents/${api.agentId}/files`, { form, headers }), 'key_reused');
    expect(await stored()).toEqual(before);
  });

  test('key_in_progress: the first request with the Idempotency-Key is in progress', async () => {
    const { rows } = await api.pool.query<{ id: string }>('select id from tokens where person_id = $1', [api.personId]);
    const other = new Client({ connectionString: api.databaseUrl });
    await other.connect();
    try {
      await other.query('begin');
      const lock = `select pg_advisory_xact_lock(hashtextextended($1::text || ' ' || $2, 0))`;
      await other.query(lock, [rows[0]?.id, 'in progress']);
      const reply = await create(api.agentId, 'in progress');
      expectReason(reply, 'key_in_progress');
      expect(reply.headers.get('retry-after')).toBe('1');
    } finally {
      await other.end();
    }
  });
});

describe('files', () => {
  test('draft_not_found and draft_repeated', async () => {
    const resource = { type: 'file', file_id: UNKNOWN };
    const threadId = await api.newThread();
    const reply = await send(threadId, message('hi', { resources: [resource] }));
    expectReason(reply, 'draft_not_found');
    expect(reply.json.error.message).toBe(`There is no draft file ${UNKNOWN}.`);
    expectReason(await send(threadId, message('hi', { resources: [resource, resource] })), 'draft_repeated');
  });

  test('too_many_attachments for more drafts than a Thread can have, whether they exist or not', async () => {
    const resources = Array.from({ length: 2 }, () => ({ type: 'file', file_id: newId() }));
    expectReason(await send(await api.newThread(), message('hi', { resources })), 'too_many_attachments');
  });

  test('too_many_attachments and file_too_large', async () => {
    const threadId = await api.newThread();
    expect((await attach(threadId)).status).toBe(201);
    const before = await stored();
    expectReason(await attach(threadId, inline('x'.repeat(101))), 'file_too_large');
    const reply = await attach(threadId);
    expectReason(reply, 'too_many_attachments');
    expect(reply.json.error.message).toBe('The limit of attachments per Thread is 1.');
    expect(await stored()).toEqual(before);
  });

  test('file_too_large, invalid_upload, incomplete_upload and too_many_drafts', async () => {
    const { token } = await api.newPerson();
    expectReason(await upload(token, ['file', 'x'.repeat(1_001)]), 'file_too_large');
    expectReason(await upload(token, ['other', 'hello']), 'invalid_upload');
    expectReason(await upload(token, ['file', 'hello'], ['file', 'hello']), 'invalid_upload');
    const cut = '--b\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\nhel';
    const headers = { 'content-type': 'multipart/form-data; boundary=b' };
    expectReason(await api.post(`/agents/${api.agentId}/files`, { body: cut, headers, token }), 'incomplete_upload');
    expect((await upload(token, ['file', 'hello'])).status).toBe(201);
    const reply = await upload(token, ['file', 'hello']);
    expectReason(reply, 'too_many_drafts');
    expect(reply.headers.get('retry-after')).toBe('60');
  });

  test('file_quota_full for uploads and attachments, until there is room again', async () => {
    const { token } = await api.newPerson();
    const threadId = await api.newThread();
    const usage = await api.pool.query<{ files: string }>('select files from file_usage where organization_id = $1', [
      api.organizationId,
    ]);
    const limit = (more: number) =>
      api.pool.query('update organizations set max_files = $2 where id = $1', [
        api.organizationId,
        Number(usage.rows[0]?.files ?? 0) + more,
      ]);
    await limit(1);
    const draftId = fileIdOf(await upload(token, ['file', 'hello']));
    try {
      expectReason(await attach(threadId), 'file_quota_full');
      const other = await api.newPerson();
      expectReason(await upload(other.token, ['file', 'hello']), 'file_quota_full');
      await api.call('DELETE', `/files/${draftId}`, { token });
      expect((await attach(threadId)).status).toBe(201);
    } finally {
      await api.pool.query('update organizations set max_files = null where id = $1', [api.organizationId]);
    }
  });

  test('content_lost once the storage has answered that it has no such bytes', async () => {
    const fileId = fileIdOf(await attach(await api.newThread()));
    const { rows } = await api.pool.query<{ key: string }>('select blob_key as key from files where id = $1', [fileId]);
    await rm(join(folder, rows[0]!.key));
    expectReason(await api.get(`/files/${fileId}/content`), 'content_lost');
  });

  test('file_not_found for the content of a draft, and range_not_satisfiable', async () => {
    const { token } = await api.newPerson();
    const draftId = fileIdOf(await upload(token, ['file', 'hello']));
    expectReason(await api.get(`/files/${draftId}/content`, { token }), 'file_not_found');
    const threadId = await api.newThread();
    const fileId = fileIdOf(await attach(threadId));
    const headers = { range: 'bytes=100-' };
    expectReason(await api.get(`/files/${fileId}/content`, { headers }), 'range_not_satisfiable');
    const matching = { 'if-match': '"other bytes"' };
    expectReason(await api.get(`/files/${fileId}/content`, { headers: matching }), 'precondition_failed');
    // HEAD has the header but no body.
    const authorization = `Bearer ${api.token}`;
    const head = await fetch(`${api.url}/files/${UNKNOWN}/content`, { method: 'HEAD', headers: { authorization } });
    expect([head.status, head.headers.get(REASON_HEADER), await head.text()]).toEqual([404, 'file_not_found', '']);
  });
});

test('reference_taken', async () => {
  const body = { userId: 'u', externalRef: 'order 1' };
  const createNamed = () => api.post(`/agents/${api.agentId}/threads`, { body });
  expect((await createNamed()).status).toBe(201);
  expectReason(await createNamed(), 'reference_taken');
});

test('attribution_forbidden and attributed_user_unknown', async () => {
  const older = await ApiUnderTest.start({ settings: { COMPATIBILITY_FIELDS: 'on' } });
  try {
    const { organizationId, agentId } = older;
    const service = {
      kind: 'service',
      organizationId,
      agentIds: [agentId],
      name: 'n',
      allowAttribution: true,
    } as const;
    const { token } = await older.access.mintToken(service);
    const body = { userId: 'u', attributed_user_id: UNKNOWN };
    expectReason(await older.post(`/agents/${agentId}/threads`, { body }), 'attribution_forbidden');
    expectReason(await older.post(`/agents/${agentId}/threads`, { body, token }), 'attributed_user_unknown');
  } finally {
    await older.stop();
  }
});

test.each([
  ['too_many_thread_streams', { STREAMS_PER_THREAD: 1 }],
  ['too_many_streams', { STREAMS_PER_PERSON_TOKEN: 1, STREAMS_PER_SERVICE_TOKEN: 1 }],
  ['too_many_organization_streams', { STREAMS_PERCENT_PER_ORGANIZATION: 1 }],
] as const)('%s', async (reason, settings) => {
  const small = await ApiUnderTest.start({ settings: { STREAMS_PER_PROCESS: 20, ...settings } });
  const abort = new AbortController();
  try {
    const path = `/threads/${await small.newThread()}/events/stream`;
    const headers = { authorization: `Bearer ${small.token}` };
    await fetch(`${small.url}${path}`, { headers, signal: abort.signal });
    expectReason(await small.get(path), reason);
  } finally {
    abort.abort();
    await small.stop();
  }
});

test('too_many_requests', async () => {
  const settings = {
    ...{ RATE_LIMIT_PER_PERSON_TOKEN: 5, RATE_LIMIT_PER_SERVICE_TOKEN: 5 },
    RATE_LIMIT_STORE: 'process' as const,
  };
  const small = await ApiUnderTest.start({ settings });
  try {
    const limited = await eventually(
      async () => {
        const reply = await small.get(`/agents/${small.agentId}`);
        return reply.status === 429 && reply;
      },
      { what: 'the budget is used up' },
    );
    expectReason(limited, 'too_many_requests');
  } finally {
    await small.stop();
  }
});

test('unexpected_failure', async () => {
  const threadId = await api.newThread();
  await api.pool.query('alter table thread_summaries rename to hidden');
  try {
    expectReason(await api.get(`/threads/${threadId}`), 'unexpected_failure');
  } finally {
    await api.pool.query('alter table hidden rename to thread_summaries');
  }
});

test('this file causes every reason except those that need a fault or a browser token', () => {
  const elsewhere: ErrorReason[] = [
    ...(['request_timeout', 'run_ended', 'thread_contended', 'files_contended', 'upload_too_slow'] as const),
    ...(['database_unavailable', 'storage_unavailable'] as const),
    // Needs two organizations: streams/stream-limits.int.spec.ts.
    'too_many_process_streams',
    // bodies/body-intake.int.spec.ts tests it, with bodies that stall.
    'too_many_body_bytes',
    // browser-tokens.int.spec.ts.
    ...(['token_expired', 'verb_missing', 'user_forbidden', 'origin_forbidden'] as const),
    ...(['service_token_required', 'browser_tokens_off'] as const),
  ];
  expect([...seen, ...elsewhere].toSorted()).toEqual(Object.keys(ERROR_REASONS).toSorted());
});

/** Sends raw bytes and returns the whole response. */
function sendRaw(request: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(Number(new URL(api.url).port), '127.0.0.1', () => socket.end(request));
    let answer = '';
    socket.setEncoding('utf8');
    socket.on('data', (data: string) => (answer += data));
    socket.on('close', () => resolve(answer));
    socket.on('error', (error) => (answer === '' ? reject(error) : resolve(answer)));
  });
}
