import fc from 'fast-check';

/** Text that has broken parsers, stores and logs before. All of it may be stored: no NUL, no lone surrogate. */
const STRANGE_TEXT = [
  'Hello',
  ' ',
  '\t\r\n',
  'é',
  'e\u0301',
  '😀',
  '👩‍👩‍👧‍👦',
  '\u202eabc',
  '\u2028\u2029',
  '\ufeffmarked',
  '\uffff\ufffe\ufffd',
  '\u{10ffff}',
  '\u0001\u0008\u001b[31m\u007f',
  // Escapes that are none: a backslash and letters.
  '\\u0000',
  '\\ud800',
  '\\x00',
  '"',
  "'; drop table events; --",
  '${7*7}{{7*7}}%s%n',
  '<script>alert(1)</script>',
  '../../etc/passwd',
  '\ue200cite\ue202turn0\ue201',
  '\ue200cite\ue202',
  '__proto__',
  'constructor',
  'null',
  '-1',
  '1e999',
];

/** What can be stored nowhere (docs/spec/decisions.md#text). */
const UNSTORABLE_TEXT = ['\0', 'a\0b', '\ud800', '\udc00', 'x\ud83dy', '\udc00\ud800', '😀\ud83d'];

const FILLERS = ['a', 'é', '😀', '\u0001', '"', '\ufffd'];

/** So many Unicode characters, which are up to twice as many UTF-16 units. */
function textOfLength(characters: number, filler: string, start = ''): string {
  const begun = [...start].slice(0, characters);
  return begun.join('') + filler.repeat(characters - begun.length);
}

export interface Lengths {
  minLength?: number;
  maxLength?: number;
}

/** Where a schema sets no upper bound, longer than any real name and cheap to send. */
const UNBOUNDED = 300;
/** Texts longer than that are made seldom: they are what takes the time. */
const LONG = 2_000;

/** Text within the bounds, often exactly at one of them. */
export function storableText({ minLength = 0, maxLength = UNBOUNDED }: Lengths, hints: string[] = []) {
  const fits = (text: string): boolean => {
    const { length } = [...text];
    return length >= minLength && length <= maxLength;
  };
  const known = [...hints, ...STRANGE_TEXT].filter(fits);
  const filler = fc.constantFrom(...FILLERS);
  const short = fc
    .tuple(fc.integer({ min: minLength, max: Math.min(maxLength, minLength + 40) }), filler)
    .map(([length, fill]) => textOfLength(length, fill));
  const longest = fc
    .tuple(fc.constantFrom(maxLength, Math.max(minLength, maxLength - 1)), filler)
    .map(([length, fill]) => textOfLength(length, fill));
  return fc.oneof(
    ...(known.length > 0 ? [{ weight: 12, arbitrary: fc.constantFrom(...known) }] : []),
    ...(hints.some(fits) ? [{ weight: 12, arbitrary: fc.constantFrom(...hints.filter(fits)) }] : []),
    { weight: 6, arbitrary: short },
    { weight: maxLength > LONG ? 1 : 4, arbitrary: longest },
  );
}

/** One character too few or too many, or a character that is refused. */
export function refusedText({ minLength = 0, maxLength }: Lengths): fc.Arbitrary<string> {
  const tooShort = minLength > 0 ? [textOfLength(minLength - 1, '😀')] : [];
  const tooLong = maxLength === undefined ? [] : FILLERS.map((fill) => textOfLength(maxLength + 1, fill));
  const unstorable = UNSTORABLE_TEXT.map((text) => textOfLength(Math.max(minLength, text.length), 'a', text));
  return fc.oneof(
    { weight: 2, arbitrary: fc.constantFrom(...unstorable) },
    ...(tooShort.length > 0 ? [{ weight: 1, arbitrary: fc.constantFrom(...tooShort) }] : []),
    ...(tooLong.length > 0 ? [{ weight: 1, arbitrary: fc.constantFrom(...tooLong) }] : []),
  );
}

const CROCKFORD = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';

/** Well formed, and of nothing that exists. */
export const strangerUlid = fc
  .tuple(
    fc.constantFrom(...'01234567'),
    fc.array(fc.constantFrom(...CROCKFORD), { minLength: 25, maxLength: 25 }),
    fc.boolean(),
  )
  .map(([first, rest, lower]) => (lower ? (first + rest.join('')).toLowerCase() : first + rest.join('')));

/** Ids that no ULID can be. */
export const WRONG_ULIDS = [
  // Overflows 128 bits.
  `8${'0'.repeat(25)}`,
  `Z${'Z'.repeat(25)}`,
  `8${'z'.repeat(25)}`,
  '0'.repeat(25),
  '0'.repeat(27),
  // Letters that Crockford left out.
  `0${'I'.repeat(25)}`,
  `0${'L'.repeat(25)}`,
  `0${'O'.repeat(25)}`,
  `0${'u'.repeat(25)}`,
  '0'.repeat(25) + '😀',
  `０${'0'.repeat(25)}`,
  `0${'0'.repeat(24)}\n`,
  ` ${'0'.repeat(26)}`,
  `${'0'.repeat(25)}-`,
  'null',
  'undefined',
  '00000000-0000-0000-0000-000000000000',
  `thread_${'0'.repeat(26)}`,
  '0',
  '0'.repeat(10_000),
];

export const WRONG_BASE64 = [
  '!!!!',
  'YQ',
  'YQ=',
  'YQ===',
  'YQ==\n',
  ' YQ==',
  '=YQ=',
  '-_-_',
  'Y Q=',
  '\u00e9\u00e9\u00e9\u00e9',
  'YQ==YQ==',
];

export const STRANGE_FILE_NAMES = [
  '',
  '.',
  '..',
  '../../etc/passwd',
  'C:\\temp\\a.txt',
  'a/b.txt',
  'naïve 😀.txt',
  'a"b.txt',
  'a\0b.txt',
  '\u202egnp.txt',
  'a'.repeat(300),
  '😀'.repeat(300),
  'CON',
  '.htaccess',
  'a%00.txt',
  'a;b=c.txt',
  "utf-8''x",
];
