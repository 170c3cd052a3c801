import fc from 'fast-check';
import { editText } from './edit-text-worker.mjs';
import { takeWindow } from './text-window.ts';

describe('a window of a text', () => {
  const all = { offset: 1, limit: 1_000, maxBytes: 256 * 1024 };

  it.each([
    ['a\nb\nc', { offset: 1, limit: 2 }, { text: 'a\nb\n', lines: 2, skipped: 0, more: true }],
    ['a\nb\nc', { offset: 3, limit: 2 }, { text: 'c', lines: 1, skipped: 2, more: false }],
    ['a\nb\nc\n', { offset: 3, limit: 1 }, { text: 'c\n', lines: 1, skipped: 2, more: false }],
    ['a\r\n\r\nb', { offset: 2, limit: 1 }, { text: '\r\n', lines: 1, skipped: 1, more: true }],
    ['a\nb', { offset: 3, limit: 1 }, { text: '', lines: 0, skipped: 2, more: false }],
    ['', { offset: 1, limit: 1 }, { text: '', lines: 0, skipped: 0, more: false }],
  ])('%j from %j is %j', async (text, wanted, window) => {
    expect(await takeWindow([text], { ...all, ...wanted })).toEqual(window);
    expect(await takeWindow(text, { ...all, ...wanted })).toEqual(window);
  });

  it('leads through any text, line by line and bounded in bytes, with nothing lost or doubled', async () => {
    const line = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 20 }),
      fc.constantFrom('x'.repeat(65_535), '😀'.repeat(40_000), 'ä'.repeat(200_000)),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(line, { maxLength: 6 }), fc.integer({ min: 1, max: 3 }), async (lines, limit) => {
        const text = lines.join('\n');
        let read = '';
        for (let offset = 1, more = true; more;) {
          const window = await takeWindow([text], { offset, limit, maxBytes: 256 * 1024 });
          expect(Buffer.byteLength(window.text)).toBeLessThanOrEqual(256 * 1024);
          expect(window.text).not.toMatch(/[\uD800-\uDBFF]$/);
          read += window.text;
          offset += window.lines;
          more = window.more;
        }
        expect(read === text).toBe(true);
      }),
      { numRuns: 50 },
    );
  });

  it('reads no further than it must', async () => {
    async function* endless(): AsyncGenerator<string> {
      for (;;) yield 'line\n';
    }
    expect(await takeWindow(endless(), { offset: 10, limit: 2, maxBytes: 100 })).toMatchObject({
      lines: 2,
      more: true,
    });
    expect(await takeWindow(endless(), { offset: 1, limit: 1e6, maxBytes: 100 })).toMatchObject({
      lines: 20,
      more: true,
    });
  });
});

describe('an edit', () => {
  const edit = (text: string, oldText: string, newText: string, replaceAll = false) =>
    decodedEdit(editText(Uint8Array.from(Buffer.from(text)), { oldText, newText, replaceAll, maxBytes: 1_000 }));
  const decodedEdit = (edited: ReturnType<typeof editText>) =>
    'refused' in edited ? edited : { text: Buffer.from(edited.bytes).toString(), count: edited.count };

  it.each([
    ['a b c', 'b', 'x', false, 'a x c', 1],
    ['a b b', 'b', 'x', true, 'a x x', 2],
    ['a b', 'b', '$& $1', false, 'a $& $1', 1],
    ['a\r\nb\r\nc', 'a\nb', 'x\ny', false, 'x\r\ny\r\nc', 1],
    ['a\nb', 'a\nb', 'x', false, 'x', 1],
    ['\uFEFFa', 'a', 'b', false, '\uFEFFb', 1],
    ['a', 'a', '', false, '', 1],
    ['äöä', 'ä', '😀', true, '😀ö😀', 2],
    ['ä\r\nb\r\n', 'ä\nb', '😀\n', false, '😀\r\n\r\n', 1],
  ])('of %j, %j to %j (all: %s), gives %j', (text, oldText, newText, all, after, count) => {
    expect(edit(text, oldText, newText, all)).toEqual({ text: after, count });
  });

  it.each([
    ['a', 'b', 'c', /not in the file/],
    ['b b', 'b', 'c', /more than once/],
    ['aaa', 'aa', 'b', /more than once/],
    ['a', '', 'b', /empty/],
    ['a', 'a', 'a', /the same/],
    ['aa', 'a', 'b'.repeat(501), /more than once/],
  ])('of %j, %j to %j, is refused', (text, oldText, newText, why) => {
    expect(edit(text, oldText, newText)).toEqual({ refused: expect.stringMatching(why) as string });
  });

  it('has its size computed before it is made', () => {
    expect(edit('a'.repeat(100), 'a', 'b'.repeat(11), true)).toEqual({
      refused: 'The edited file would have 1100 bytes. It can have at most 1000.',
    });
    expect(edit('a'.repeat(100), 'a', 'b'.repeat(10), true)).toMatchObject({ count: 100 });
  });

  it('of any text is that of String.replaceAll', () => {
    const text = fc.string({ unit: fc.constantFrom('a', 'b', 'ä', '😀', '\n'), maxLength: 30 });
    fc.assert(
      fc.property(text, text, text, (before, oldText, newText) => {
        const edited = edit(before, oldText, newText, true);
        if ('refused' in edited) return oldText === '' || oldText === newText || !before.includes(oldText);
        return edited.text === before.replaceAll(oldText, () => newText);
      }),
    );
  });

  it('of bytes that are not UTF-8 is refused', () => {
    const edited = editText(Uint8Array.of(0xff, 97), { oldText: 'a', newText: 'b', replaceAll: false, maxBytes: 10 });
    expect(edited).toEqual({ refused: 'The file is not UTF-8 text.' });
  });
});
