import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { EXIT, type CommandError } from './exit-codes.ts';
import { HttpClient } from './http-client.ts';

const token = `spool_op_${'A'.repeat(48)}`;
const ID = '01JD0000000000000000000000';

/** Tests responses of a Spool API or of a proxy before it; test/operations/operators.e2e.spec.ts tests a real API. */
describe('the client of the admin API', () => {
  let server: Server;
  let answer: (request: IncomingMessage, response: ServerResponse) => void;
  let requests: { line: string; body: string; headers: IncomingMessage['headers'] }[];
  let notes: string[];
  let client: HttpClient;

  beforeEach(async () => {
    requests = [];
    notes = [];
    server = createServer((request, response) => {
      let body = '';
      request.setEncoding('utf8').on('data', (text: string) => (body += text));
      request.on('end', () => {
        requests.push({ line: `${request.method} ${request.url}`, body, headers: request.headers });
        answer(request, response);
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    client = new HttpClient({ origin, token }, (text) => notes.push(text));
  });

  afterEach(() => {
    server.closeAllConnections();
    server.close();
  });

  const reply = (status: number, body: unknown, headers: Record<string, string> = {}) => {
    answer = (_, response) =>
      response.writeHead(status, headers).end(typeof body === 'string' ? body : JSON.stringify(body));
  };

  const failure = async (): Promise<CommandError> =>
    client.call('getQueue').then(
      () => Promise.reject(new Error('It was answered.')),
      (error: unknown) => error as CommandError,
    );

  test('makes method, path, query and body from the operation', async () => {
    reply(200, {});
    await client.call('listPeople', { query: { name: 'a&b ü', organizationId: ID, cursor: undefined } });
    await client.call('addMember', { params: { organizationId: ID }, body: { personId: ID } });
    await client.call('getOrganization', { params: { organizationId: '../x' } });
    expect(requests.map(({ line, body }) => [line, body])).toEqual([
      [`GET /admin/v1/people?name=a%26b+%C3%BC&organizationId=${ID}`, ''],
      [`POST /admin/v1/organizations/${ID}/members`, `{"personId":"${ID}"}`],
      ['GET /admin/v1/organizations/..%2Fx', ''],
    ]);
    expect(requests[1]?.headers).toMatchObject({
      authorization: `Bearer ${token}`,
      'content-type': 'application/json',
    });
  });

  test.each([
    [400, 'invalid_request', 'usage'],
    [401, 'unauthenticated', 'notAllowed'],
    [403, 'forbidden', 'notAllowed'],
    [404, 'not_found', 'notFound'],
    [409, 'conflict', 'conflict'],
    [500, 'internal_error', 'failed'],
    [503, 'internal_error', 'away'],
  ])('%d %s is exit %s, with the message', async (status, code, exit) => {
    reply(status, { error: { code, message: 'Because.' } });
    expect(await failure()).toMatchObject({ exit, message: 'Because.' });
  });

  test.each([
    ['a page of a proxy', 502, '<html>'],
    ['another service', 404, '{"message":"no"}'],
    ['a page that says all is well', 200, '<html>'],
    ['a redirect, which a token does not follow', 302, ''],
  ])('%s is no Spool', async (_, status, body) => {
    reply(status, body, status === 302 ? { location: 'http://127.0.0.1:1/' } : {});
    const { exit, message } = await failure();
    expect([EXIT.usage, EXIT.away]).toContain(EXIT[exit]);
    expect(message).not.toContain(token);
    expect(requests).toHaveLength(1);
  });

  test('with nobody there it says so, in one line and without the token', async () => {
    server.close();
    const { exit, message } = await failure();
    expect({ exit, message }).toEqual({
      exit: 'away',
      message: expect.stringMatching(/^The service at http:\S+ does not answer \(ECONNREFUSED\)\.$/) as string,
    });
  });

  test('a download that is cut off is no download', async () => {
    const read = async (): Promise<Buffer> => {
      const chunks: Uint8Array[] = [];
      for await (const chunk of client.bytes('downloadFile', { params: { fileId: 'x' } })) chunks.push(chunk);
      return Buffer.concat(chunks);
    };
    answer = (_, response) => response.writeHead(200, { 'content-length': 3 }).end(Buffer.from([0, 255, 128]));
    expect(await read()).toEqual(Buffer.from([0, 255, 128]));
    answer = (_, response) =>
      response.writeHead(200, { 'content-length': 3 }).write(Buffer.from([0]), () => response.destroy());
    await expect(read()).rejects.toMatchObject({ exit: 'away' });
  });

  test('waits as long as a 429 asks for, and goes on', async () => {
    const error = { error: { code: 'rate_limited', message: 'Too many.' } };
    answer = (_, response) => {
      if (requests.length > 2) response.end('{"queue":{}}');
      else response.writeHead(429, { 'retry-after': '0' }).end(JSON.stringify(error));
    };
    expect(await client.call('getQueue')).toEqual({ queue: {} });
    expect(requests).toHaveLength(3);
    expect(notes).toHaveLength(2);
  });

  test.each([
    ['an hour', '3600', 1],
    ['a time that never comes', '0', 5],
    ['nothing', undefined, 1],
  ])('gives up where a 429 asks for %s', async (_, retryAfter, tries) => {
    const headers = retryAfter === undefined ? {} : { 'retry-after': retryAfter };
    reply(429, { error: { code: 'rate_limited', message: 'Too many.' } }, headers);
    expect(await failure()).toMatchObject({ exit: 'away', message: 'Too many.' });
    expect(requests).toHaveLength(tries);
  });

  const linesOf = async (signal?: AbortSignal): Promise<unknown[]> => {
    const lines: unknown[] = [];
    for await (const line of client.lines('exportThread', { params: { threadId: ID } }, signal)) lines.push(line);
    return lines;
  };

  test('reads lines however they are cut, and passes over empty ones', async () => {
    const text = '{"id":"ä"}\n\n{"id":"b"}\n\n{"id":"c"}';
    answer = (_, response) => {
      const bytes = [...Buffer.from(text)];
      const sendNext = (): void => {
        const byte = bytes.shift();
        if (byte === undefined) response.end();
        else response.write(Buffer.of(byte), () => setImmediate(sendNext));
      };
      sendNext();
    };
    expect(await linesOf()).toEqual([{ id: 'ä' }, { id: 'b' }, { id: 'c' }]);
  });

  test('an error as the last line is thrown', async () => {
    reply(200, '{"id":"a"}\n{"error":{"code":"internal_error","message":"It failed."}}\n');
    await expect(linesOf()).rejects.toMatchObject({ exit: 'failed', message: 'It failed.' });
  });

  test('an answer that breaks off is thrown', async () => {
    answer = (_, response) => response.write('{"id":"a"}\n', () => response.destroy());
    await expect(linesOf()).rejects.toMatchObject({ exit: 'away' });
  });

  test('an abort ends the request, and so does a caller that reads no further', async () => {
    const closed: Promise<void>[] = [];
    answer = (_, response) => {
      closed.push(new Promise((resolve) => response.once('close', resolve)));
      response.write('{"id":"a"}\n');
    };
    const abort = new AbortController();
    const lines = client.lines('exportThread', { params: { threadId: ID } }, abort.signal);
    expect((await lines.next()).value).toEqual({ id: 'a' });
    abort.abort();
    await expect(lines.next()).rejects.toThrow();
    for await (const _ of client.lines('exportThread', { params: { threadId: ID } })) break;
    await Promise.all(closed);
    expect(closed).toHaveLength(2);
  });
});
