import fc from 'fast-check';
import { measureTurns } from '#testing';
import { AnswerReader, AnswerTooLarge } from './read-answer.ts';

const MEBIBYTE = 1024 * 1024;

function written(message: Uint8Array, bytes: Uint8Array): Buffer {
  const header = Buffer.alloc(8);
  header.writeUInt32BE(message.byteLength, 0);
  header.writeUInt32BE(bytes.byteLength, 4);
  return Buffer.concat([header, message, bytes]);
}

const someBytes = fc.uint8Array({ maxLength: 20 });

it('reads answers one after the other, however their pieces are cut', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(someBytes, someBytes, fc.integer({ min: 1, max: 30 })), { maxLength: 3 }), (all) => {
      const reader = new AnswerReader();
      for (const [message, bytes, size] of all) {
        const whole = written(message, bytes);
        const pieces = Array.from({ length: Math.ceil(whole.byteLength / size) }, (_, i) =>
          whole.subarray(i * size, (i + 1) * size),
        );
        const read = pieces.map((piece) => reader.take(piece, 40));
        expect(read.pop()).toEqual({ message: new Uint8Array(message), bytes: new Uint8Array(bytes) });
        expect(read.every((answer) => answer === null)).toBe(true);
      }
    }),
  );
});

it('refuses a larger answer at its header, and takes the largest', () => {
  const empty = new Uint8Array();
  expect(() => new AnswerReader().take(written(empty, new Uint8Array(9)).subarray(0, 8), 8)).toThrow(AnswerTooLarge);
  expect(() => new AnswerReader().take(written(new Uint8Array(9), empty).subarray(0, 8), 8)).toThrow(AnswerTooLarge);
  expect(new AnswerReader().take(written(empty, new Uint8Array(8)), 8)?.bytes).toHaveLength(8);
});

it('takes a short turn for the last piece of a large answer, because the others are in their place', async () => {
  const bytes = 64 * MEBIBYTE;
  const header = Buffer.alloc(8);
  header.writeUInt32BE(bytes, 4);
  const piece = new Uint8Array(MEBIBYTE).fill(1);
  const prepare = (): AnswerReader => {
    const reader = new AnswerReader();
    expect(reader.take(header, bytes)).toBeNull();
    for (let i = 1; i < bytes / piece.byteLength; i++) expect(reader.take(piece, bytes)).toBeNull();
    return reader;
  };
  const takeLast = (reader: AnswerReader) => expect(reader.take(piece, bytes)?.bytes).toHaveLength(bytes);
  // It takes 25 ms to put all pieces in their place at the end.
  await measureTurns(takeLast, { maxMs: 10, prepare });
});
