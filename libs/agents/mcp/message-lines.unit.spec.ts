import { expectWithin, timedTest } from '#testing';
import { MessageLines, MessageTooLarge } from './message-lines.ts';

const taken = (lines: MessageLines, ...pieces: string[]) => pieces.flatMap((piece) => lines.take(Buffer.from(piece)));

describe('lines of messages', () => {
  it('are put together from pieces', () => {
    expect(taken(new MessageLines(9), 'a\nb', 'c', '\n\n', 'd')).toEqual(['a', 'bc', '']);
  });

  it('keep characters that are cut by a piece', () => {
    const lines = new MessageLines(9);
    expect([...lines.take(Buffer.from([0xc3])), ...lines.take(Buffer.from([0xa9, 10]))]).toEqual(['é']);
  });

  it('may be as long as the limit, and not longer', () => {
    expect(taken(new MessageLines(3), 'abc\n', 'de', 'f\n')).toEqual(['abc', 'def']);
    expect(() => taken(new MessageLines(3), 'ab', 'cd')).toThrow(MessageTooLarge);
    expect(() => taken(new MessageLines(3), 'abcd\n')).toThrow(MessageTooLarge);
  });

  timedTest(
    'take time in proportion to their length',
    () => {
      const lines = new MessageLines(64 * 1024 * 1024);
      const piece = Buffer.alloc(1_024, 'x');
      const startedAt = performance.now();
      for (let i = 0; i < 32 * 1_024; i++) lines.take(piece);
      expect(lines.take(Buffer.from('\n'))[0]).toHaveLength(32 * 1024 * 1024);
      expectWithin(1_000, performance.now() - startedAt, 'a line of 32 MiB in 1 KiB pieces took');
      return Promise.resolve();
    },
    20_000,
  );
});
