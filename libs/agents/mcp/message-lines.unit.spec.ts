import { measureTurns } from '#testing';
import { MessageLines, MessageTooLarge } from './message-lines.ts';

const taken = (lines: MessageLines, ...pieces: string[]) => pieces.flatMap((piece) => lines.take(Buffer.from(piece)));

describe('lines of messages', () => {
  it('are put together from pieces, without the empty ones', () => {
    expect(taken(new MessageLines(() => 9), '\na\nb', 'c', '\n\n', 'd', '\n')).toEqual(['a', 'bc', 'd']);
  });

  it('keep characters that are cut by a piece', () => {
    const lines = new MessageLines(() => 9);
    expect([...lines.take(Buffer.from([0xc3])), ...lines.take(Buffer.from([0xa9, 10]))]).toEqual(['é']);
  });

  it('may be as long as the limit, and not longer', () => {
    expect(taken(new MessageLines(() => 3), 'abc\n', 'de', 'f\n')).toEqual(['abc', 'def']);
    expect(() => taken(new MessageLines(() => 3), 'ab', 'cd')).toThrow(MessageTooLarge);
    expect(() => taken(new MessageLines(() => 3), 'abcd\n')).toThrow(MessageTooLarge);
  });

  it('take time in proportion to their length', async () => {
    const piece = Buffer.alloc(1_024, 'x');
    const take = () => {
      const lines = new MessageLines(() => 64 * 1024 * 1024);
      for (let i = 0; i < 32 * 1_024; i++) lines.take(piece);
      expect(lines.take(Buffer.from('\n'))[0]).toHaveLength(32 * 1024 * 1024);
    };
    await measureTurns(take, { maxMs: 1_000 });
  });
});
