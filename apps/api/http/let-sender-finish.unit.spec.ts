import { once } from 'node:events';
import { Socket } from 'node:net';
import { Readable } from 'node:stream';
import { letSenderFinish } from './let-sender-finish.ts';

const PIECES = 20;

/** A refused request that goes on arriving for so many pieces. Each piece that is read is added to `read`. */
function arriving(name: string, read: string[]): Readable {
  const source = Readable.from(
    Array.from({ length: PIECES }, () => Buffer.alloc(10)),
    { highWaterMark: 1 },
  );
  return source.on('data', () => read.push(name)).pause();
}

test('the pieces of all refused requests are discarded one after the other', async () => {
  const read: string[] = [];
  const sources = ['a', 'b', 'c'].map((name) => arriving(name, read));
  for (const source of sources) letSenderFinish(source, new Socket(), 'owner');
  await Promise.all(sources.map((source) => once(source, 'end')));
  expect(read.join('')).toBe('abc'.repeat(PIECES));
});

test('owners take turns, however many requests each has', async () => {
  const read: string[] = [];
  const sources = [...Array.from({ length: 10 }, () => arriving('a', read)), arriving('b', read)];
  for (const source of sources.slice(0, -1)) letSenderFinish(source, new Socket(), 'many');
  letSenderFinish(sources.at(-1)!, new Socket(), 'one');
  await once(sources.at(-1)!, 'end');
  // The first piece of each is read at once, and the last ones of the two owners in any order.
  expect(read.filter((name) => name === 'a').length).toBeLessThanOrEqual(10 + PIECES);
  for (const source of sources) source.destroy();
});

test('the connection of a silent sender is closed', async () => {
  const [source, connection] = [new Readable({ read: () => undefined }), new Socket()];
  letSenderFinish(source, connection, 'silent');
  await once(connection, 'close');
  source.destroy();
});
