import type { FolderFile, ToolContext } from '../harness.ts';
import { readFolderFile } from './read-file.ts';

/** Each step of reading has as many bytes. */
const CHUNK_BYTES = 16 * 1024;
const ascii = `${'x'.repeat(99)}\n`.repeat(100);
const latin = (text: string): Buffer => Buffer.from(text, 'latin1');
const chinese = Buffer.from('你好世界，这是文本');

async function readText(parts: (string | Buffer)[], wanted = { offset: 1, limit: 2_000 }): Promise<string> {
  const bytes = Buffer.concat(parts.map((part) => Buffer.from(part as string)));
  async function* chunks({ start = 0, end = bytes.byteLength - 1 } = {}): AsyncGenerator<Uint8Array> {
    for (let at = start; at <= end; at += CHUNK_BYTES) yield bytes.subarray(at, Math.min(at + CHUNK_BYTES, end + 1));
  }
  const files = { read: (_: FolderFile, range?: { start: number; end: number }) => Promise.resolve(chunks(range)) };
  const file = { fileId: '1', path: 'a.txt', mimeType: 'text/plain', size: bytes.byteLength, readOnly: false };
  return (await readFolderFile(file, wanted, { files } as unknown as ToolContext)).text;
}

const guessed = (label: string): string => `[The encoding of a.txt was guessed: ${label}.]`;
const REPLACED_ONE = '[Invalid utf-8 bytes were replaced by \ufffd, 1 in all.]';

describe('a text that read_file reads', () => {
  it.each([
    ['in its first bytes', [latin('caf\xe9\n'), ascii, chinese], `caf\ufffd\n${ascii}`],
    ['after its first bytes', [ascii, latin('caf\xe9\n'), chinese], `${ascii}caf\ufffd\n`],
    [
      'in another chunk than its characters',
      [ascii, latin('caf\xe9\n'), ascii, chinese],
      `${ascii}caf\ufffd\n${ascii}`,
    ],
  ])('is UTF-8 with one invalid byte %s', async (_, parts, before) => {
    expect(await readText(parts)).toBe(`${before}${chinese.toString()}\n${REPLACED_ONE}`);
  });

  it.each([
    ['windows-1252', 'short', [latin('caf\xe9')], 'café'],
    ['windows-1252', 'long, with one such byte', [latin('caf\xe9\n'), ascii], `café\n${ascii}`],
    ['windows-1252', 'long, with late ones', [ascii, latin('caf\xe9 na\xefve\n')], `${ascii}café naïve\n`],
    [
      'windows-1251',
      'long, with most letters after the first bytes',
      [latin('\xa9\n'), ascii, Buffer.from('cff0e8e2e5f22c20ece8f0', 'hex')],
      `©\n${ascii}Привет, мир`,
    ],
    [
      'gb18030',
      'long, with a character that is valid UTF-8 too',
      [Buffer.from('d6d0cec4b1e0c2eb0a', 'hex'), ascii, Buffer.from('d6d0cec4c4a3', 'hex')],
      `中文编码\n${ascii}中文模`,
    ],
  ])('is %s if it is %s', async (label, _, parts, text) => {
    expect(await readText(parts)).toBe(`${text}${text.endsWith('\n') ? '' : '\n'}${guessed(label)}`);
  });

  it('is decided by what is read of it', async () => {
    const parts = [latin('caf\xe9\n'), ascii, ascii, chinese];
    const next = '[Lines 1 to 1 of a.txt. To continue, read with offset 2.]';
    expect(await readText(parts, { offset: 1, limit: 1 })).toBe(`café\n${next}\n${guessed('windows-1252')}`);
    expect(await readText(parts, { offset: 202, limit: 1 })).toBe(chinese.toString());
  });

  it('may end with the end-of-file character of DOS, and have a NUL', async () => {
    for (const text of ['a\r\n\x1a', 'a,b\n1,\0\n']) expect((await readText([text])).startsWith(text)).toBe(true);
  });
});
