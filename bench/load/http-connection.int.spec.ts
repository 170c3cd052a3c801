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
  const asked = { headers: ['X-Test: 1'], body: '{"a":1}' };
  const expected = { status: 201, body: 'POST /echo 1 {"a":1}' };
  await expect(connection.send('POST', '/echo', asked)).resolves.toEqual(expected);

  const whole = await connection.send('GET', '/pieces', { headers: [] });
  expect(whole).toEqual({ status: 200, body: `one two ${'x'.repeat(100_000)}` });

  let seen = '';
  const { body } = await connection.send('GET', '/pieces', { headers: [], onPiece: (text) => (seen += text) });
  expect(body).toBe('');
  expect(seen).toBe(whole.body);

  await expect(connection.send('POST', '/echo', asked)).resolves.toEqual(expected);
  expect(sockets).toBe(1);
});

test('a request whose connection is cut fails', async () => {
  await expect(connection.send('GET', '/cut', { headers: [] })).rejects.toThrow();
});
