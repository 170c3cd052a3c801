import fc from 'fast-check';
import type { Schema } from './document.ts';
import type { Values } from './values.ts';

/** What the interface must do with a request: never refuse its shape, refuse it, or either. */
export type Expected = 'accepted' | 'refused' | 'anything';

export interface JsonBody {
  kind: 'json';
  /** With picks and raw JSON in it (values.ts). */
  value: unknown;
  /** What is done to its text, a name of TWISTS. */
  twist: string;
  n: number;
}

export interface BodyChoice<Body> {
  body: Body;
  expected: Expected;
  why: string;
}

interface Twist {
  expected: Expected;
  /** `limit`: the largest body that the process takes. */
  apply(text: string, n: number, limit: number): string | Buffer;
}

/** Levels of nesting that no parser by recursion survives. */
const DEEP = 10_000;
const deep = (open: string, close: string) => open.repeat(DEEP) + close.repeat(DEEP);

const padTo = (text: string, bytes: number): string => text + ' '.repeat(Math.max(0, bytes - Buffer.byteLength(text)));

/** As the first member of the object, or the text itself where it is none. */
const withMember = (text: string, member: string): string =>
  text.startsWith('{') ? `{${member}${text === '{}' ? '' : ','}${text.slice(1)}` : text;

const afterFirstQuote = (text: string, bytes: number[]): Buffer => {
  const at = text.indexOf('"') + 1;
  return Buffer.concat([Buffer.from(text.slice(0, at)), Buffer.from(bytes), Buffer.from(text.slice(at))]);
};

const refused = (apply: Twist['apply']): Twist => ({ expected: 'refused', apply });
const accepted = (apply: Twist['apply']): Twist => ({ expected: 'accepted', apply });
const anything = (apply: Twist['apply']): Twist => ({ expected: 'anything', apply });

/** What can be done to JSON between the value and the wire. */
export const TWISTS: Record<string, Twist> = {
  none: accepted((text) => text),
  'white space around': accepted((text) => ` \n\t\r${text}\r\n `),
  'escaped where it need not be': accepted((text) =>
    text.replace(/"(\w)/g, (_, letter: string) => `"\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`),
  ),
  'one byte below the limit': accepted((text, _, limit) => padTo(text, limit - 1)),
  'exactly the limit': accepted((text, _, limit) => padTo(text, limit)),
  'one byte over the limit': refused((text, _, limit) => padTo(text, limit + 1)),
  'twice the limit': refused((text, _, limit) => padTo(text, 2 * limit)),
  'a string as large as the limit': refused((_text, _, limit) => `{"extra":"${'a'.repeat(limit - 12)}"}`),
  'a list as large as the limit': refused((_text, _, limit) => `[${'0,'.repeat(limit / 2 - 2)}0]`),
  'unknown fields up to the limit': refused((_text, _, limit) => {
    const fields = Array.from({ length: Math.floor(limit / 12) - 2 }, (_, i) => `"${String(i).padStart(6, '0')}":0`);
    return `{${fields.join(',')}}`;
  }),
  'byte order mark': anything((text) => `\ufeff${text}`),
  'a byte that is never UTF-8': refused((text) => afterFirstQuote(text, [0xff])),
  'overlong UTF-8': refused((text) => afterFirstQuote(text, [0xc0, 0x80])),
  'a surrogate in UTF-8': refused((text) => afterFirstQuote(text, [0xed, 0xa0, 0x80])),
  'cut UTF-8': refused((text) => afterFirstQuote(text, [0xf0, 0x9f, 0x98])),
  'UTF-16': refused((text) => Buffer.from(text, 'utf16le')),
  'cut short': refused((text, n) => text.slice(0, n % text.length)),
  'more behind it': refused((text, n) => text + ['}', ',', '{}', '\0', '""', '//'][n % 6]!),
  empty: refused(() => ''),
  'white space only': refused(() => ' \n'),
  'deep lists': refused(() => deep('[', ']')),
  'deep objects': refused(() => `${'{"a":'.repeat(DEEP)}1${'}'.repeat(DEEP)}`),
  'a deep unknown field': refused((text) => withMember(text, `"extra":${deep('[', ']')}`)),
  'deep and never closed': refused(() => '['.repeat(100 * DEEP)),
  'the same key twice': anything((text) => {
    const [first] = /"[^"]*":("[^"\\]*"|\d+|true|false|null)/.exec(text) ?? ['"extra":1'];
    return withMember(text, first);
  }),
  'every key twice, the first of another type': anything((text) => {
    const names = text.match(/"\w+"(?=:)/g) ?? [];
    return withMember(text, [...new Set(names)].map((name) => `${name}:[]`).join(',') || '"extra":1');
  }),
  'a __proto__ of its own': refused((text) => withMember(text, '"__proto__":{"isAdmin":true}')),
  '__proto__ twice': refused((text) => withMember(text, '"__proto__":null,"__proto__":{"toString":1}')),
  'an escaped __proto__': refused((text) => withMember(text, '"__pr\\u006fto__":{}')),
  'a constructor of its own': refused((text) => withMember(text, '"constructor":{"prototype":{"isAdmin":true}}')),
  'comments and trailing commas': refused(
    (text, n) => [`/* */${text}`, text.replace(/}$/, ',}'), `// \n${text}`][n % 3]!,
  ),
  'another notation': refused(
    (_, n) => ["{'a':1}", '{a:1}', 'NaN', '-Infinity', 'undefined', '01', '+1', '.5', '0x10', 'a=b'][n % 10]!,
  ),
  'another value': refused((_, n) => ['null', 'true', '1', '"text"', '[]', '[{}]', '-0', '1e999'][n % 8]!),
  'a line break in a string': refused((text) => text.replace(/"/, '"\n')),
  'a NUL between': refused((text) => text.replace(/[:,}]/, '\0$&')),
};

/** What makes a body large: seldom, the real limit being 8 MiB. */
export const LARGE_TWISTS = Object.keys(TWISTS).filter((name) => /limit|never closed/.test(name));
const TWISTED = Object.keys(TWISTS).filter((name) => name !== 'none' && !LARGE_TWISTS.includes(name));

/** Bodies of a JSON operation: as the schema says, with one thing wrong, or twisted on the way. */
export function jsonBodies(values: Values, schema: Schema, name: string): fc.Arbitrary<BodyChoice<JsonBody>> {
  const valid = values.valid(schema, name);
  const wrong = values.wrong(schema, name);
  const twisted = (names: string[]): fc.Arbitrary<BodyChoice<JsonBody>> =>
    fc.tuple(valid, fc.constantFrom(...names), fc.nat(100_000)).map(([value, twist, n]) => ({
      body: { kind: 'json', value, twist, n },
      expected: TWISTS[twist]!.expected,
      why: twist === 'none' ? '' : `body: ${twist}`,
    }));
  return fc.oneof(
    { weight: 60, arbitrary: twisted(['none']) },
    { weight: 18, arbitrary: twisted(TWISTED) },
    { weight: 1, arbitrary: twisted(LARGE_TWISTS) },
    ...(wrong === null
      ? []
      : [
          {
            weight: 22,
            arbitrary: wrong.map(({ value, why }) => ({
              body: { kind: 'json' as const, value, twist: 'none', n: 0 },
              expected: 'refused' as const,
              why: `body${why}`,
            })),
          },
        ]),
  );
}
