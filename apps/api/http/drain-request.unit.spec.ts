import { once } from 'node:events';
import { connect, createServer, Socket, type AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { drainRequest } from './drain-request.ts';

const PIECES = 20;

/** Creates a refused request of which this many chunks still arrive. Adds its name to `read` for each chunk that is read. */
function arriving(name: string, read: string[]): Readable {
  const source = Readable.from(
    Array.from({ length: PIECES }, () => Buffer.alloc(10)),
    { highWaterMark: 1 },
  );
  return source.on('data', () => read.push(name)).pause();
}

test('discards the chunks of all refused requests one after the other', async () => {
  const read: string[] = [];
  const sources = ['a', 'b', 'c'].map((name) => arriving(name, read));
  for (const source of sources) drainRequest(source, new Socket(), 'owner');
  await Promise.all(sources.map((source) => once(source, 'end')));
  expect(read.join('')).toBe('abc'.repeat(PIECES));
});

test('owners take turns, for any number of requests of each', async () => {
  const read: string[] = [];
  const sources = [...Array.from({ length: 10 }, () => arriving('a', read)), arriving('b', read)];
  for (const source of sources.slice(0, -1)) drainRequest(source, new Socket(), 'many');
  drainRequest(sources.at(-1)!, new Socket(), 'one');
  await once(sources.at(-1)!, 'end');
  // The first chunk of each is read immediately, and the last chunks of the two owners in any order.
  expect(read.filter((name) => name === 'a').length).toBeLessThanOrEqual(10 + PIECES);
  for (const source of sources) source.destroy();
});

test('keeps the connection of a sender whose chunk arrived while the process was blocked', async () => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const sender = connect((server.address() as AddressInfo).port, '127.0.0.1');
  const [connection] = (await once(server, 'connection')) as [Socket];
  if (sender.connecting) await once(sender, 'connect');
  drainRequest(connection, connection, 'sender');
  const arrived = Promise.race([once(connection, 'data'), once(connection, 'close')]);
  sender.write('late');
  // Longer than a sender may be silent.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2_100);
  await arrived;
  await new Promise((resolve) => setImmediate(resolve));
  expect(connection.destroyed).toBe(false);
  sender.destroy();
  server.close();
  await once(server, 'close');
});

test('closes the connection of a silent sender', async () => {
  const [source, connection] = [new Readable({ read: () => undefined }), new Socket()];
  drainRequest(source, connection, 'silent');
  await once(connection, 'close');
  source.destroy();
});
