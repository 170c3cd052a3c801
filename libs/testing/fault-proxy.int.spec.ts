import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { eventually } from './eventually.ts';
import { faultProxy, type FaultProxy } from './fault-proxy.ts';

/** Answers each request with the same bytes, and counts what it was asked. */
let echo: Server;
let requests: string[];
let proxy: FaultProxy;
const clients: Socket[] = [];

beforeEach(async () => {
  requests = [];
  echo = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.on('data', (bytes) => {
      requests.push(bytes.toString());
      socket.write(bytes);
    });
  });
  await once(echo.listen(0, '127.0.0.1'), 'listening');
  proxy = await faultProxy((echo.address() as AddressInfo).port);
});

afterEach(async () => {
  clients.splice(0).forEach((client) => client.destroy());
  await proxy.close();
  echo.close();
});

interface Conversation {
  socket: Socket;
  received: () => string;
  ended: () => string | undefined;
}

function converse(): Conversation {
  const socket = connect(proxy.port, '127.0.0.1');
  clients.push(socket);
  let received = '';
  let ended: string | undefined;
  socket.on('data', (bytes) => (received += bytes.toString()));
  socket.on('error', (error: NodeJS.ErrnoException) => (ended = error.code));
  socket.on('close', () => (ended ??= 'closed'));
  return { socket, received: () => received, ended: () => ended };
}

async function conversing(): Promise<Conversation> {
  const talk = converse();
  talk.socket.write('hello');
  await eventually(() => talk.received() === 'hello', { what: 'the first answer is there' });
  return talk;
}

it('passes bytes both ways', async () => {
  await conversing();
  expect(requests).toEqual(['hello']);
  expect(proxy.connectionCount()).toBe(1);
});

it('tells which connections have begun to be answered', async () => {
  await conversing();
  converse();
  await eventually(() => proxy.connectionCount() === 2, { what: 'the other is connected' });
  expect(proxy.answeredCount()).toBe(1);
});

it('puts itself into a URL', () => {
  expect(proxy.through('postgres://me:secret@db:5432/spool?x=1')).toBe(
    `postgres://me:secret@127.0.0.1:${proxy.port}/spool?x=1`,
  );
});

it('cut: ends connections and refuses new ones until resumed', async () => {
  const talk = await conversing();
  proxy.cut();
  await eventually(talk.ended, { what: 'the connection has ended' });
  const refused = converse();
  await eventually(refused.ended, { what: 'the new connection has ended' });
  proxy.resume();
  await conversing();
});

it('stall: keeps connections open and silent, also new ones; nothing is lost when resumed', async () => {
  const talk = await conversing();
  proxy.stall();
  const late = converse();
  talk.socket.write(' again');
  late.socket.write('me too');
  // Bytes that pass the proxy need far less than a round trip through another connection to the server.
  const direct = connect((echo.address() as AddressInfo).port, '127.0.0.1');
  clients.push(direct);
  direct.write('direct');
  await once(direct, 'data');
  expect(requests).toEqual(['hello', 'direct']);
  expect([talk.ended(), late.ended()]).toEqual([undefined, undefined]);

  proxy.resume();
  await eventually(() => talk.received() === 'hello again' && late.received() === 'me too', { what: 'all has passed' });
});

it('abandon: what is open stays silent for good, what is new works', async () => {
  const talk = await conversing();
  proxy.abandon();
  talk.socket.write(' again');
  await conversing();
  proxy.resume();
  await conversing();
  expect(requests).toEqual(['hello', 'hello', 'hello']);
  expect([talk.received(), talk.ended()]).toEqual(['hello', undefined]);
});

it('reset: breaks connections with RST and takes new ones', async () => {
  const talk = await conversing();
  proxy.reset();
  await eventually(() => talk.ended() === 'ECONNRESET', { what: 'the client sees a reset' });
  await conversing();
});

it('dropNextAnswer: the server has done it, the client never hears', async () => {
  const talk = await conversing();
  const dropped = proxy.dropNextAnswer((request) => request.includes('commit'));
  talk.socket.write('insert');
  await eventually(() => talk.received() === 'helloinsert', { what: 'what does not match passes' });
  talk.socket.write('commit');
  await dropped;
  await eventually(talk.ended, { what: 'the connection has ended' });
  expect(requests).toEqual(['hello', 'insert', 'commit']);
  expect(talk.received()).toBe('helloinsert');
  await conversing();
});

it('endBefore: the client gets what precedes the text, and then the end', async () => {
  const talk = await conversing();
  const ended = proxy.endBefore('last');
  talk.socket.write(' more');
  await eventually(() => talk.received() === 'hello more', { what: 'an answer without the text passes' });
  talk.socket.write(' and last of all');
  await ended;
  await eventually(talk.ended, { what: 'the connection has ended' });
  expect(talk.received()).toBe('hello more and ');
  await conversing();
});

it('ends a client that was held back when the server went away', async () => {
  const served = once(echo, 'connection') as Promise<[Socket]>;
  const { socket, ended } = converse();
  const [server] = await served;
  server.pause();
  socket.write(Buffer.alloc(32 * 1_048_576));
  await eventually(() => server.bytesRead > 0 && socket.bufferSize > 0, { what: 'it is held back' });
  server.destroy();
  await eventually(ended, { what: 'the client has ended' });
});
