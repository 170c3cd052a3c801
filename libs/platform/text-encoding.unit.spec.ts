import { countUtf8, encodingOf } from './text-encoding.ts';

const hex = (text: string): Uint8Array => Buffer.from(text.replaceAll(' ', ''), 'hex');
const utf16be = (text: string): Uint8Array => Buffer.from(text, 'utf16le').swap16();

/** Detects the encoding of a whole text and decodes it. */
function read(bytes: Uint8Array): [string | undefined, boolean | undefined, string] {
  const encoding = encodingOf(bytes, false);
  return [encoding?.label, encoding?.isGuess, encoding === null ? '' : new TextDecoder(encoding.label).decode(bytes)];
}

describe('the encoding of a text', () => {
  it.each([
    ['ASCII', Buffer.from('plain'), 'utf-8', 'plain'],
    ['UTF-8', Buffer.from('naïve 中文 😀'), 'utf-8', 'naïve 中文 😀'],
    ['UTF-8 with a mark', Buffer.from('\uFEFFnaïve'), 'utf-8', 'naïve'],
    ['UTF-16 with a mark', Buffer.from('\uFEFFnaïve', 'utf16le'), 'utf-16le', 'naïve'],
    ['UTF-16BE with a mark', utf16be('\uFEFFnaïve'), 'utf-16be', 'naïve'],
    [
      'UTF-8 with one invalid byte',
      Buffer.concat([Buffer.from('naïve '), hex('ff'), Buffer.from(' ключ')]),
      'utf-8',
      'naïve \ufffd ключ',
    ],
    ['UTF-8 that ends within a character', hex('c3a9 20 e4bd'), 'utf-8', 'é \ufffd'],
    ['nothing', hex(''), 'utf-8', ''],
    ['a terminal', Buffer.from('\x1b[1mbold'), 'utf-8', '\x1b[1mbold'],
    ['DOS that ends with 0x1A', Buffer.from('a\r\n\x1a\x1a'), 'utf-8', 'a\r\n\x1a\x1a'],
    ['a table with one NUL', Buffer.from('a,b\n1,\0\n'), 'utf-8', 'a,b\n1,\0\n'],
    ['a long table with one NUL', Buffer.from(`\0${'a,é,b\n'.repeat(9)}`), 'utf-8', `\0${'a,é,b\n'.repeat(9)}`],
    ['a word with a DEL', Buffer.from('a\x7fb'), 'utf-8', 'a\x7fb'],
  ])('is certain for %s', (_, bytes, label, text) => {
    expect(read(bytes)).toEqual([label, false, text]);
  });

  it.each([
    ['windows-1252', Buffer.from('naïve', 'latin1'), 'naïve'],
    ['windows-1252', Buffer.from('caf\xe9', 'latin1'), 'café'],
    ['windows-1252', Buffer.from('Größe, Füße, pää, Ação', 'latin1'), 'Größe, Füße, pää, Ação'],
    ['windows-1252', Buffer.from('5°C ±2 µm, £3', 'latin1'), '5°C ±2 µm, £3'],
    ['windows-1250', hex('5a 61 bf f3 b3 e6 20 67 ea 9c 6c b9 20 6a 61 9f f1'), 'Zażółć gęślą jaźń'],
    [
      'windows-1254',
      hex('54 fc 72 6b e7 65 20 64 6f f0 72 75 20 fe 65 6b 65 72 20 fd 73 fd'),
      'Türkçe doğru şeker ısı',
    ],
    ['gb18030', hex('c4e3bac3a3accac0bde7'), '你好，世界'],
    ['gb18030', hex('2f2f20 bcc6cbe3 d7dcbacd 0a'), '// 计算总和\n'],
    ['gb18030', hex('b1e0c2eb'), '编码'],
    ['big5', hex('a741a66ea141a540acc9'), '你好，世界'],
    ['shift_jis', hex('93fa967b8cea82cc837483408343838b'), '日本語のファイル'],
    ['euc-jp', hex('c6fccbdcb8eca4cea5d5a5a1a5a4a5eb'), '日本語のファイル'],
    ['iso-2022-jp', hex('1b2442 467c4b5c386c 1b2842'), '日本語'],
    ['euc-kr', hex('c0ccb0cdc0ba20c7d1b1b9beee'), '이것은 한국어'],
    ['windows-1251', hex('cff0e8e2e5f22c20ece8f0'), 'Привет, мир'],
    ['windows-1251', hex('cff0e8e2e5f2 0d0a1a'), 'Привет\r\n\x1a'],
    ['koi8-r', hex('f0d2c9d7c5d42c20cdc9d2'), 'Привет, мир'],
    ['ibm866', hex('8fe0a8a2a5e22c20aca8e0'), 'Привет, мир'],
    ['windows-1253', hex('cae1ebe7ecddf1e120eafcf3ece5'), 'Καλημέρα κόσμε'],
    ['windows-1255', hex('f9ece5ed20f2e5eced'), 'שלום עולם'],
    ['windows-1256', hex('c7e1d3e1c7e320dae1edDFe3'), 'السلام عليكم'],
    ['utf-16le', Buffer.from('naïve\n', 'utf16le'), 'naïve\n'],
    ['utf-16be', utf16be('naïve\n'), 'naïve\n'],
    ['utf-16le', Buffer.from('ключ и замок\n'.repeat(2), 'utf16le'), 'ключ и замок\n'.repeat(2)],
    [
      'utf-16le',
      Buffer.from('你好，世界。\n这是文本文件\n第一行\n第二行\n', 'utf16le'),
      '你好，世界。\n这是文本文件\n第一行\n第二行\n',
    ],
  ])('is guessed: %s (%#)', (label, bytes, text) => {
    expect(read(bytes)).toEqual([label, true, text]);
  });

  it.each([
    ['UTF-8', Buffer.from('aä').subarray(0, 2), 'utf-8'],
    ['GBK', hex('c4e3bac3a3accac0bd'), 'gb18030'],
  ])('is found if the bytes of %s are cut within a character', (_, bytes, label) => {
    expect(encodingOf(bytes, true)?.label).toBe(label);
  });

  it.each([
    ['two control bytes in a short text', Buffer.from('a\x01b\x02c')],
    ['two control bytes in a row', Buffer.from(`${'x'.repeat(999)}\x01\0`)],
    ['many control bytes', Buffer.from('name\0'.repeat(99))],
    ['a control byte and bytes that are not UTF-8', Buffer.from('caf\xe9\0', 'latin1')],
    ['numbers', hex('0100 0000 0200 0000')],
    ['bytes without order', hex('00ff 10ff 20ff 30ff')],
    ['PNG', hex('89504e470d0a1a0a 0000000d49484452 00000001000000010806000000')],
    ['GIF', hex('474946383961 0a000a00 80 01 00')],
    ['JPEG', hex('ffd8ffe0 0010 4a46494600 0101 00 0001 0001 0000')],
    ['ELF', hex('7f454c46 02010100 0000000000000000 0300 3e00 01000000')],
    ['gzip', hex('1f8b0800 00000000 0003')],
    ['a zip of plain text', Buffer.concat([hex('504b0304 0a00 0000 0000'), Buffer.from('x'.repeat(4_000))])],
    ['SQLite', Buffer.concat([Buffer.from('SQLite format 3\0'), hex('1000 0101 0040 2020 00000001')])],
    ['a class of Java', hex('cafebabe 0000 0041 000d 0a00 0200 0307 0004 0c00 0500 06')],
    ['WebAssembly', hex('0061736d 01000000')],
    ['an ID3 tag', Buffer.concat([Buffer.from('ID3'), hex('0300 0000 0000 21'), Buffer.from('TIT2')])],
  ])('is null for %s', (_, bytes) => expect(encodingOf(bytes, false)).toBeNull());
});

describe('characters of UTF-8', () => {
  it.each([
    ['', 0, 0],
    ['61 c3a9 e4bda0 f09f9880', 3, 0],
    ['e9 20 e4bda0', 1, 1],
    ['e4bd 20 e4bd', 0, 2],
    ['80 c0 ff f09f98', 0, 4],
    ['d6d0 cec4', 0, 4],
  ])('are counted: %s', (bytes, valid, invalid) => expect(countUtf8(hex(bytes))).toEqual({ valid, invalid }));
});
