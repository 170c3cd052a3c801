import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { HttpConnection } from './http-connection.ts';

let server: Server;
let connection: HttpConnection;
let sockets = 0;

beforeAll(async () => {
  server = createServer(answer).on('connection', () => sockets++);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  connection = await HttpConnection.open(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
});

afterAll(async () => {
  connection.close();
  await new Promise((resolve) => server.close(resolve));
});

function answer(request: IncomingMessage, response: ServerResponse): void {
  if (request.url === '/refused')
    return void response.writeHead(429).end(`{"error":"too many streams"}${'.'.repeat(1_000)}`);
  if (request.url === '/cut') return void response.destroy();
  if (request.url === '/pieces') {
    for (const piece of ['one ', 'two ', 'x'.repeat(100_000)]) response.write(piece);
    return void response.end();
  }
  let body = '';
  request.setEncoding('utf8').on('data', (text: string) => (body += text));
  request.on('end', () => {
    const text = `${request.method} ${request.url} ${String(request.headers['x-test'])} ${body}`;
    response.writeHead(201, { 'Content-Length': text.length }).end(text);
  });
}

test('one connection carries answers of known length and in chunks, one after the other', async () => {
  const asked = { headers: ['X-Test: 1'], body: '{"a":1}', expect: 201 };
  const expected = 'POST /echo 1 {"a":1}';
  await expect(connection.send('POST', '/echo', asked)).resolves.toBe(expected);

  const whole = await connection.send('GET', '/pieces', { headers: [], expect: 200 });
  expect(whole).toBe(`one two ${'x'.repeat(100_000)}`);

  let seen = '';
  const onPiece = (text: string): void => void (seen += text);
  await expect(connection.send('GET', '/pieces', { headers: [], expect: 200, onPiece })).resolves.toBe('');
  expect(seen).toBe(whole);

  await expect(connection.send('POST', '/echo', asked)).resolves.toBe(expected);
  expect(sockets).toBe(1);
});

test('rejects an unexpected status with the request, the status and the start of the body, also for a stream', async () => {
  const pieces: string[] = [];
  const asked = { headers: [], expect: 200, onPiece: (text: string) => void pieces.push(text) };
  const message = 'GET /refused returned 429, expected 200: {"error":"too many streams"}..';
  const error = await connection.send('GET', '/refused', asked).catch((thrown: unknown) => thrown as Error);
  expect(error).toMatchObject({ message: expect.stringContaining(message) as string });
  expect((error as Error).message.length).toBeLessThan(400);
  expect(pieces).toEqual([]);
  // The connection is still usable.
  await expect(connection.send('GET', '/pieces', { headers: [], expect: 200 })).resolves.toContain('one two');
});

test('counts the bytes of HTTP in both directions', async () => {
  const before = connection.bytes;
  const body = await connection.send('GET', '/pieces', { headers: [], expect: 200 });
  expect(connection.bytes.sent - before.sent).toBeGreaterThan('GET /pieces HTTP/1.1'.length);
  expect(connection.bytes.received - before.received).toBeGreaterThan(body.length);
});

test('a request whose connection is cut fails', async () => {
  await expect(connection.send('GET', '/cut', { headers: [], expect: 200 })).rejects.toThrow();
});
