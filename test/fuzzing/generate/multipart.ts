import fc from 'fast-check';
import type { Schema } from './document.ts';
import type { BodyChoice, Expected } from './json-bodies.ts';
import { STRANGE_FILE_NAMES } from './strings.ts';

export interface MultipartBody {
  kind: 'multipart';
  parts: Part[];
  /** What is done to the parts' text, a name of MULTIPART_TWISTS. */
  twist: string;
  n: number;
}

interface Part {
  name: string;
  /** Null: a field. */
  fileName: string | null;
  type: string | null;
  content: string;
}

const BOUNDARY = 'generated-boundary';

interface Twist {
  expected: Expected;
  contentType?: string;
  apply(parts: Part[], n: number): Buffer;
}

const quote = (text: string): string => text.replaceAll(/["\r\n]/g, (char) => encodeURIComponent(char));

function headOf({ name, fileName, type }: Part): string {
  const file = fileName === null ? '' : `; filename="${quote(fileName)}"`;
  const typeLine = type === null ? '' : `\r\nContent-Type: ${type}`;
  return `Content-Disposition: form-data; name="${quote(name)}"${file}${typeLine}\r\n\r\n`;
}

const one = (part: Part, boundary = BOUNDARY) => `--${boundary}\r\n${headOf(part)}${part.content}\r\n`;
const write = (parts: Part[], boundary = BOUNDARY): Buffer =>
  Buffer.from(`${parts.map((part) => one(part, boundary)).join('')}--${boundary}--\r\n`);

const accepted = (apply: Twist['apply'], contentType?: string): Twist => make('accepted', apply, contentType);
const refused = (apply: Twist['apply'], contentType?: string): Twist => make('refused', apply, contentType);
const anything = (apply: Twist['apply'], contentType?: string): Twist => make('anything', apply, contentType);
function make(expected: Expected, apply: Twist['apply'], contentType?: string): Twist {
  return { expected, apply, ...(contentType === undefined ? {} : { contentType }) };
}

const field = (name: string, content = 'x'): Part => ({ name, fileName: null, type: null, content });
const plain = (parts: Part[]): Buffer => write(parts);

const MULTIPART_TWISTS: Record<string, Twist> = {
  none: accepted(plain),
  'text before the first boundary': anything((parts) => Buffer.concat([Buffer.from('preamble\r\n'), write(parts)])),
  'text behind the last boundary': anything((parts) => Buffer.concat([write(parts), Buffer.from('epilogue')])),
  'quoted boundary': accepted(plain, `multipart/form-data; boundary="${BOUNDARY}"`),
  'upper-case type': anything(plain, `Multipart/Form-Data; Boundary=${BOUNDARY}`),
  'no part': refused(() => write([])),
  'every part twice': anything((parts) => write([...parts, ...parts])),
  'one field more': anything((parts) => write([...parts, field('extra')])),
  'one field more at first': anything((parts) => write([field('extra'), ...parts])),
  'one file more': anything((parts) => write([...parts, { ...field('extra'), fileName: 'b', type: 'text/plain' }])),
  'fields of objects': anything((parts) =>
    write([field('__proto__'), field('constructor'), field('toString'), ...parts]),
  ),
  'many fields': anything((parts) => write([...Array.from({ length: 500 }, (_, i) => field(`f${i}`)), ...parts])),
  'a field as large as any': anything((parts) => write([field('extra', 'a'.repeat(300_000)), ...parts])),
  'other names': refused((parts) => write(parts.map((part) => ({ ...part, name: `${part.name}s` })))),
  'fields and no file': refused((parts) => write(parts.map((part) => field(part.name)))),
  'a part without a head': anything((parts) =>
    Buffer.concat([Buffer.from(`--${BOUNDARY}\r\n\r\nx\r\n`), write(parts)]),
  ),
  'a part with a huge head': anything((parts) =>
    Buffer.from(
      one(parts[0] ?? field('x')).replace('\r\n\r\n', `\r\nX-Long: ${'a'.repeat(100_000)}\r\n\r\n`) +
        `--${BOUNDARY}--\r\n`,
    ),
  ),
  'no last boundary': refused((parts) => Buffer.from(parts.map((part) => one(part)).join(''))),
  'cut short': refused((parts, n) => {
    const all = write(parts);
    return all.subarray(0, n % (all.length - 6));
  }),
  'line feeds only': anything((parts) =>
    Buffer.from(write(parts).toString('latin1').replaceAll('\r\n', '\n'), 'latin1'),
  ),
  'another boundary than said': refused((parts) => write(parts, 'other')),
  'no boundary said': refused(plain, 'multipart/form-data'),
  'empty boundary': refused(plain, 'multipart/form-data; boundary='),
  'a long boundary': anything(
    (parts) => write(parts, 'b'.repeat(200)),
    `multipart/form-data; boundary=${'b'.repeat(200)}`,
  ),
  empty: refused(() => Buffer.alloc(0)),
  'no multipart at all': refused(() => Buffer.from('{"file":"x"}')),
  json: refused(() => Buffer.from('{"file":"x"}'), 'application/json'),
  mixed: refused(plain, `multipart/mixed; boundary=${BOUNDARY}`),
  urlencoded: refused(() => Buffer.from('file=x'), 'application/x-www-form-urlencoded'),
};

/** The bytes, and the content type that goes with them. */
export function writeMultipart({ parts, twist, n }: MultipartBody): { bytes: Buffer; contentType: string } {
  const made = MULTIPART_TWISTS[twist]!;
  return { bytes: made.apply(parts, n), contentType: made.contentType ?? `multipart/form-data; boundary=${BOUNDARY}` };
}

const TYPES = [
  'text/plain',
  'application/octet-stream',
  'image/png',
  'text/html; charset=utf-8',
  'x',
  '',
  '😀/b',
  null,
];
const CONTENTS = [
  '',
  'a',
  'text\r\n',
  '\0\0\0',
  '\x89PNG\r\n\x1a\n',
  '%PDF-1.7',
  '<svg onload=alert(1)>',
  '{"a":1}',
  'a'.repeat(70_000),
  `\r\n--${BOUNDARY}x\r\n`,
];

/** Bodies of an upload: the parts of the schema, with odd names and contents, or twisted. */
export function multipartBodies(schema: Schema): fc.Arbitrary<BodyChoice<MultipartBody>> {
  const names = Object.keys(schema.properties ?? { file: {} });
  const part = (name: string): fc.Arbitrary<Part> =>
    fc.record({
      name: fc.constant(name),
      fileName: fc.oneof(fc.constant('notes.txt'), fc.constantFrom(...STRANGE_FILE_NAMES)),
      type: fc.constantFrom(...TYPES),
      content: fc.constantFrom(...CONTENTS),
    });
  const usual = names.map((name) => ({ name, fileName: 'notes.txt', type: 'text/plain', content: 'some notes' }));
  const twisted = fc.constantFrom(...Object.keys(MULTIPART_TWISTS).filter((name) => name !== 'none'));
  return fc.oneof(
    { weight: 3, arbitrary: choose(fc.constant(usual), fc.constant('none')) },
    { weight: 2, arbitrary: choose(fc.tuple(...names.map(part)), fc.constant('none'), 'anything') },
    { weight: 4, arbitrary: choose(fc.constant(usual), twisted) },
  );
}

function choose(parts: fc.Arbitrary<Part[]>, twist: fc.Arbitrary<string>, expected?: Expected) {
  return fc.tuple(parts, twist, fc.nat(100_000)).map(([given, name, n]): BodyChoice<MultipartBody> => ({
    body: { kind: 'multipart', parts: given, twist: name, n },
    expected: expected ?? MULTIPART_TWISTS[name]!.expected,
    why: name === 'none' ? '' : `body: ${name}`,
  }));
}
