import { connect, type AddressInfo, type Socket } from 'node:net';
import { pino } from 'pino';
import { REASON_HEADER } from '#contract';
import { scrape } from '#platform';
import { eventually } from '#testing';
import { ApiUnderTest } from '../api-under-test.testing.ts';
import { BodyIntake } from './body-intake.ts';

jest.resetModules(); // other spec files of this worker have metrics too

// Real: HTTP over raw connections, PostgreSQL, task pool.

const KIB = 1024;
const MIB = 1024 * KIB;
/** Pino's level of log lines without a problem. */
const INFO = 30;

let api: ApiUnderTest;
let stranger: { token: string; agentId: string };
const logged: string[] = [];
beforeAll(async () => {
  api = await ApiUnderTest.start({
    logger: pino({}, { write: (line) => logged.push(line) }),
    settings: {
      BODY_BUDGET_BYTES: 32 * MIB,
      BODY_TIMEOUT_MS: 8_000,
      HEADERS_TIMEOUT_MS: 1_000,
      BODY_BYTES_PER_SECOND: 10_000,
      BODY_RATE_WINDOW_MS: 2_000,
    },
  });
  api.app.getHttpServer().on('connection', (socket: Socket) => sockets.push(socket));
  const organizationId = await api.access.createOrganization('Other');
  const personId = await api.access.createPerson('Eve');
  await api.access.addMember(organizationId, personId);
  const { token } = await api.access.mintToken({ kind: 'person', personId, name: 'n' });
  stranger = { token, agentId: await api.newAgent({ organizationId }) };
});
afterAll(() => api.stop());

const opened: Socket[] = [];
/** The server's ends of all connections. */
const sockets: Socket[] = [];
afterEach(async () => {
  for (const socket of opened.splice(0)) socket.destroy();
  await eventually(async () => (await heldBytes()) === 0, { what: 'all bytes are released' });
});

async function heldBytes(): Promise<number> {
  return Number(/^spool_body_bytes (\d+)$/m.exec((await scrape()).text)?.[1]);
}

interface Sender {
  socket: Socket;
  /** The text that was received so far. */
  answer: () => string;
}

/** Sends the head of a request only. */
function open(
  headers: string[],
  {
    of = api,
    token = of.token,
    method = 'POST',
    path = `/agents/${of.agentId}/threads`,
  }: { of?: ApiUnderTest; token?: string; method?: string; path?: string } = {},
): Sender {
  const url = new URL(of.url);
  const socket = connect(Number(url.port), '127.0.0.1');
  opened.push(socket);
  let text = '';
  socket.setEncoding('utf8').on('data', (data: string) => (text += data));
  socket.on('error', () => undefined);
  const head = [`${method} ${url.pathname}${path} HTTP/1.1`, 'Host: x', `Authorization: Bearer ${token}`, ...headers];
  socket.write(`${head.join('\r\n')}\r\n\r\n`);
  return { socket, answer: () => text };
}

const JSON_TYPE = 'Content-Type: application/json';
const ofLength = (bytes: number) => [JSON_TYPE, `Content-Length: ${bytes}`];

async function expectAnswer({ answer }: Sender, status: number, reason: string): Promise<string> {
  await eventually(() => answer().includes('\r\n\r\n'), { what: `an answer with ${status}`, timeoutMs: 20_000 });
  expect(answer()).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
  expect(answer().toLowerCase()).toContain(`${REASON_HEADER.toLowerCase()}: ${reason}\r\n`);
  return answer();
}

const create = (text: string) => ({ userId: 'u', input: { type: 'user.message', content: [{ type: 'text', text }] } });

describe('bytes in flight', () => {
  it('refuses bodies beyond the share of an organization with 503, and admits small ones and those of another', async () => {
    const stalled = [open(ofLength(8 * MIB)), open(ofLength(8 * MIB))];
    for (const { socket } of stalled) socket.write('{"userId":"');
    await eventually(async () => (await heldBytes()) === 16 * MIB, { what: 'the share is used up' });
    const refused = await expectAnswer(open(ofLength(8 * MIB)), 503, 'too_many_body_bytes');
    expect(refused.toLowerCase()).toContain('\r\nretry-after: 1\r\n');
    expect(JSON.parse(refused.split('\r\n\r\n')[1]!)).toMatchObject({ error: { code: 'internal_error' } });
    expect((await api.post(`/agents/${api.agentId}/threads`, { body: create('small') })).status).toBe(201);
    const answered = () => logged.some((line) => line.includes('"status":503'));
    await eventually(answered, { what: 'the refused request has its line' });
    // A refusal is no failure of the process. Callers can cause thousands.
    expect(logged.filter((line) => (JSON.parse(line) as { level: number }).level > INFO)).toEqual([]);
    const { status } = await api.post(`/agents/${stranger.agentId}/threads`, {
      token: stranger.token,
      body: create('x'.repeat(20_000)),
    });
    expect(status).toBe(201);
    // The organization's own requests succeed again when bytes are released.
    stalled[0]!.socket.destroy();
    const body = { userId: 'u', resources: [], input: create('hi').input };
    await eventually(async () => (await api.post(`/agents/${api.agentId}/threads`, { body })).status === 201, {
      what: 'there is room again',
    });
  });

  it('counts bytes of a chunked body as they arrive', async () => {
    const sender = open([JSON_TYPE, 'Transfer-Encoding: chunked']);
    const part = 'x'.repeat(MIB);
    sender.socket.write('1\r\n"\r\n');
    for (let i = 0; i < 3; i++) sender.socket.write(`${MIB.toString(16)}\r\n${part}\r\n`);
    await eventually(async () => (await heldBytes()) >= 3 * MIB, { what: 'the bytes are counted' });
    expect(await heldBytes()).toBeLessThanOrEqual(8 * MIB);
    for (let i = 0; i < 6; i++) sender.socket.write(`${MIB.toString(16)}\r\n${part}\r\n`);
    await expectAnswer(sender, 413, 'body_too_large');
  });

  it('counts an upload with one part', async () => {
    const headers = ['Content-Type: multipart/form-data; boundary=b', `Content-Length: ${60 * MIB}`];
    const senders = Array.from({ length: 3 }, () => open(headers, { path: `/agents/${api.agentId}/files` }));
    await eventually(async () => (await heldBytes()) === 15 * MIB, { what: 'the uploads are counted' });
    expect(senders.map(({ answer }) => answer())).toEqual(['', '', '']);
    await expectAnswer(open(headers, { path: `/agents/${api.agentId}/files` }), 503, 'too_many_body_bytes');
  });
});

describe('bytes of a closed connection', () => {
  const uploads = ['Content-Type: multipart/form-data; boundary=b', `Content-Length: ${60 * MIB}`];

  it('are not reserved if it closed during the token look-up', async () => {
    const { token } = await api.newPerson();
    const opening = jest.spyOn(BodyIntake.prototype, 'open');
    const blocker = await api.pool.connect();
    try {
      await blocker.query('begin');
      await blocker.query('lock table tokens in access exclusive mode');
      const { socket } = open(uploads, { token, path: `/agents/${api.agentId}/files` });
      await eventually(isLockAwaited, { what: 'the look-up waits' });
      const { port } = socket.address() as AddressInfo;
      const ofClient = sockets.find(({ remotePort }) => remotePort === port)!;
      socket.destroy();
      await eventually(() => ofClient.destroyed, { what: 'the server has noticed' });
      expect(opening).not.toHaveBeenCalled();
    } finally {
      await blocker.query('commit');
      blocker.release();
    }
    // afterEach checks that nothing is held.
    await eventually(() => opening.mock.calls.length === 1, { what: 'the request continued' });
    opening.mockRestore();
  });

  it('are released if its request waits for an earlier answer', async () => {
    const threadId = await api.newThread({ text: 'hi' });
    const { socket, answer } = open([], { method: 'GET', path: `/threads/${threadId}/events/stream` });
    await eventually(() => answer().includes('\r\n\r\n'), { what: 'the stream is open' });
    const body = JSON.stringify(create('x'.repeat(20_000)));
    const path = `${new URL(api.url).pathname}/agents/${api.agentId}/threads`;
    const head = [`POST ${path} HTTP/1.1`, 'Host: x', `Authorization: Bearer ${api.token}`, ...ofLength(body.length)];
    // Listeners of one connection must not add up to a warning.
    for (let i = 0; i < 12; i++) socket.write(`${head.join('\r\n')}\r\n\r\n${body}`);
    await eventually(async () => (await heldBytes()) === 12 * body.length, { what: 'the bodies are held' });
    socket.destroy();
  });
});

async function isLockAwaited(): Promise<boolean> {
  const { rowCount } = await api.pool.query(
    `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
  );
  return rowCount !== 0;
}

describe('a slow request', () => {
  it('gets 408 if its JSON body stalls', async () => {
    const sender = open(ofLength(100));
    sender.socket.write('{');
    expect(await expectAnswer(sender, 408, 'request_timeout')).toContain('too slowly');
  });

  it.each([
    ['gets 408 if its JSON body arrives below the minimum rate', 500, 408, 'too slowly'],
    ['is accepted if its JSON body arrives above the minimum rate', 2_000, 201, '"thread"'],
  ])('%s', async (_, bytesPerWrite, status, part) => {
    const body = `${' '.repeat(60_000)}${JSON.stringify(create('x'))}`;
    const sender = open(ofLength(body.length));
    let sent = 0;
    const timer = setInterval(() => {
      sender.socket.write(body.slice(sent, sent + bytesPerWrite));
      sent += bytesPerWrite;
      if (sent >= body.length) clearInterval(timer);
    }, 100);
    try {
      await eventually(() => sender.answer().includes('\r\n\r\n'), { what: 'an answer' });
      expect(sender.answer()).toMatch(new RegExp(`^HTTP/1.1 ${status} [^]*${part}`));
    } finally {
      clearInterval(timer);
    }
  });

  it('gets 408 if its JSON body does not arrive in time, at any rate', async () => {
    const settings = { BODY_TIMEOUT_MS: 1_000, BODY_MS_PER_MIB: 160, BODY_BYTES_PER_SECOND: 10_000 };
    const impatient = await ApiUnderTest.start({ settings });
    const sender = open(ofLength(4 * MIB), { of: impatient });
    const timer = setInterval(() => sender.socket.write(' '.repeat(20_000)), 200);
    try {
      expect(await expectAnswer(sender, 408, 'request_timeout')).toContain('within 1.64 s');
    } finally {
      clearInterval(timer);
      await impatient.stop();
    }
  });

  it('gets 408 if its upload stalls', async () => {
    const headers = ['Content-Type: multipart/form-data; boundary=b', 'Content-Length: 1000000'];
    const sender = open(headers, { path: `/agents/${api.agentId}/files` });
    const part = 'Content-Disposition: form-data; name="file"; filename="a.txt"';
    sender.socket.write(`--b\r\n${part}\r\n\r\n${'x'.repeat(100_000)}`);
    await expectAnswer(sender, 408, 'request_timeout');
  });

  it('gets 408 if its upload does not arrive in time, at any rate', async () => {
    const impatient = await ApiUnderTest.start({ settings: { REQUEST_TIMEOUT_MS: 1_000, HEADERS_TIMEOUT_MS: 1_000 } });
    const headers = ['Content-Type: multipart/form-data; boundary=b', `Content-Length: ${60 * MIB}`];
    const sender = open(headers, { of: impatient, path: `/agents/${impatient.agentId}/files` });
    const part = 'Content-Disposition: form-data; name="file"; filename="a.txt"';
    sender.socket.write(`--b\r\n${part}\r\n\r\n`);
    const timer = setInterval(() => sender.socket.write('x'.repeat(20_000)), 200);
    try {
      expect(await expectAnswer(sender, 408, 'request_timeout')).toContain('did not arrive in time');
    } finally {
      clearInterval(timer);
      await impatient.stop();
    }
  });

  it('gets 408 if its headers do not arrive', async () => {
    const socket = connect(Number(new URL(api.url).port), '127.0.0.1');
    opened.push(socket);
    let text = '';
    socket.setEncoding('utf8').on('data', (data: string) => (text += data));
    socket.write('GET /api/v1/threads HTTP/1.1\r\nHost: x\r\n');
    await expectAnswer({ socket, answer: () => text }, 408, 'request_timeout');
  });
});

describe('the shape check of JSON', () => {
  it.each([
    ['deep lists', '['.repeat(8 * MIB), 'nested deeper'],
    ['many keys', `{${'"a":1,'.repeat(1_300_000)}`, 'fields in one object'],
    ['many numbers', `[${'1,'.repeat(4_000_000)}`, 'values'],
  ])('refuses %s before the whole body has arrived', async (_, body, message) => {
    const sender = open(ofLength(8 * MIB));
    // The rest never comes.
    sender.socket.write(body.slice(0, MIB));
    const answer = await expectAnswer(sender, 400, 'invalid_field');
    expect(answer).toContain(message);
  });
});

describe('a large body', () => {
  it('is parsed in the task pool', async () => {
    const texts = Array.from({ length: 80 }, () => ({ type: 'text', text: 'é"\n'.repeat(10_000) }));
    const body = { userId: 'u', input: { type: 'user.message', content: texts } };
    const before = await parsed();
    expect((await api.post(`/agents/${api.agentId}/threads`, { body })).status).toBe(201);
    expect(await parsed()).toBe(before + 1);
  });

  it('gets 400 if it is not JSON in UTF-8', async () => {
    const path = `/agents/${api.agentId}/threads`;
    for (const body of [`{"userId":"${'x'.repeat(MIB)}`, `"${'x'.repeat(MIB)}"}`]) {
      const { status, json } = await api.post(path, { body });
      expect([status, json.error.code]).toEqual([400, 'invalid_json']);
    }
    const bytes = Buffer.concat([Buffer.from('"'), Buffer.alloc(MIB, 0xff), Buffer.from('"')]);
    const sender = open(ofLength(bytes.length));
    sender.socket.write(bytes);
    await expectAnswer(sender, 400, 'invalid_json');
  });
});

async function parsed(): Promise<number> {
  const { text } = await scrape();
  return Number(/^spool_pool_tasks_total\{task="parse-json",outcome="ok"\} (\d+)$/m.exec(text)?.[1] ?? 0);
}
