import fc from 'fast-check';
import type { Parameter } from './document.ts';
import type { Expected } from './json-bodies.ts';
import { strangerUlid, WRONG_ULIDS } from './strings.ts';
import { isUlid, pickOf, type Pick } from './values.ts';

/** One part of a request: what it is, what that means for the answer, and what is odd about it. */
export interface Aspect<T> {
  value: T;
  expected: Expected;
  why: string;
}

export type Header = [name: string, value: string | Pick];

/** Who sends the request. `own` made most of what exists. */
export const CALLERS = ['own', 'other', 'service', 'outsider'];
/** What stands in the place of a token and is none: 401, whatever else is wrong. */
export const NO_CALLERS: Record<string, (token: string) => string[]> = {
  'no header': () => [],
  'empty header': () => [''],
  'scheme only': () => ['Bearer'],
  'scheme and space': () => ['Bearer '],
  'no scheme': (token) => [token],
  basic: () => ['Basic dXNlcjpwYXNzd29yZA=='],
  'another scheme with a token': (token) => [`Token ${token}`],
  'one character more': (token) => [`Bearer ${token}a`],
  'one character less': (token) => [`Bearer ${token.slice(0, -1)}`],
  'other case': (token) => [`Bearer ${token.toUpperCase()}`],
  'two words': (token) => [`Bearer ${token} ${token}`],
  'a comma': (token) => [`Bearer ${token},`],
  'not ASCII': () => ['Bearer é\u00ff'],
  long: () => [`Bearer ${'a'.repeat(8_000)}`],
  'legacy form': () => ['Bearer 0123456789abcdef0123456789abcdef'],
  'unknown with a good form': (token) => [`Bearer ${token.replace(/.{8}$/, '00000000')}`],
  injection: () => ["Bearer ' or 1=1 --"],
};
/** Tokens that were good once (world.ts). */
export const PAST_CALLERS = ['revoked', 'expired'];

const noCallers = fc.constantFrom(...Object.keys(NO_CALLERS), ...PAST_CALLERS);

/** Only services create browser tokens. */
export const credentials = (operation: string): fc.Arbitrary<Aspect<string>> => {
  const usual = operation === 'POST /browser-tokens' ? 'service' : 'own';
  return fc.oneof({ weight: 82, arbitrary: caller(usual) }, ...otherCredentials);
};

const otherCredentials: fc.WeightedArbitrary<Aspect<string>>[] = [
  { weight: 5, arbitrary: caller('other') },
  { weight: 4, arbitrary: caller('service') },
  { weight: 2, arbitrary: caller('outsider') },
  { weight: 5, arbitrary: noCallers.map((value) => ({ value, expected: 'refused' as const, why: `token: ${value}` })) },
];

function caller(value: string): fc.Arbitrary<Aspect<string>> {
  return fc.constant({ value, expected: 'accepted', why: '' });
}

/** Few, so that keys come again: with the same request, with another, by another caller. */
const KEYS = Array.from({ length: 12 }, (_, i) => `key-${i}`);
const ODD_KEYS = ['a\tb', 'a b', 'é', '\u00ff', '😀', '"quoted"', "'", 'a,b', '\\0', '%00', '\u0080'];

const lengths = (name: string, { schema }: Parameter): fc.Arbitrary<Aspect<Header[]>>[] => {
  const { minLength = 0, maxLength = 1_000 } = schema;
  const good = [Math.max(1, minLength), maxLength].map((length) => ({
    text: 'k'.repeat(length),
    expected: 'accepted' as const,
  }));
  const wrong = [...(minLength > 0 ? [minLength - 1] : []), ...(schema.maxLength === undefined ? [] : [maxLength + 1])];
  const bad = wrong.map((length) => ({ text: 'k'.repeat(length), expected: 'refused' as const }));
  return [
    fc.constantFrom(...good, ...bad).map(({ text, expected }) => ({
      value: [[name, text]],
      expected,
      why: expected === 'accepted' ? '' : `${name} of ${text.length} characters`,
    })),
  ];
};

/** The header parameters of an operation. */
export function headerValues(parameters: Parameter[]): fc.Arbitrary<Aspect<Header[]>> {
  const absent = fc.constant<Aspect<Header[]>>({ value: [], expected: 'accepted', why: '' });
  const each = parameters.map((parameter) =>
    fc.oneof({ weight: 5, arbitrary: absent }, { weight: 3, arbitrary: headerOf(parameter) }),
  );
  return fc.tuple(...each).map((all) => ({
    value: all.flatMap(({ value }) => value),
    expected:
      all.find(({ expected }) => expected === 'refused')?.expected ??
      all.find(({ expected }) => expected === 'anything')?.expected ??
      'accepted',
    why: all
      .map(({ why }) => why)
      .filter((why) => why !== '')
      .join('; '),
  }));
}

function headerOf(parameter: Parameter): fc.Arbitrary<Aspect<Header[]>> {
  const { name, schema } = parameter;
  const odd = (values: string[]): fc.Arbitrary<Aspect<Header[]>> =>
    fc.constantFrom(...values).map((text) => ({ value: [[name, text]], expected: 'anything', why: `${name}: odd` }));
  if (isUlid(schema)) {
    const good = fc.oneof<fc.Arbitrary<string | Pick>[]>(pickOf(name), pickOf(name), strangerUlid);
    const wrong = WRONG_ULIDS.filter((id) => /^[!-~]+$/.test(id));
    return fc.oneof(
      {
        weight: 4,
        arbitrary: good.map((value): Aspect<Header[]> => ({ value: [[name, value]], expected: 'accepted', why: '' })),
      },
      // An id that is none may as well be taken for none given.
      { weight: 2, arbitrary: odd([...wrong, '', 'é']) },
    );
  }
  const known = [...KEYS, ...(RANGES[name.toLowerCase()] ?? [])];
  const usual = fc.constantFrom(...known).map((text): Aspect<Header[]> => ({
    value: [[name, text]],
    expected: RANGES[name.toLowerCase()] ? 'anything' : 'accepted',
    why: '',
  }));
  const twice = fc.constantFrom(...KEYS).map((text): Aspect<Header[]> => ({
    value: [
      [name, text],
      [name, text],
    ],
    expected: 'anything',
    why: `${name} twice`,
  }));
  return fc.oneof({ weight: 6, arbitrary: usual }, ...lengths(name, parameter), odd(ODD_KEYS), twice);
}

const RANGES: Record<string, string[]> = {
  range: [
    'bytes=0-0',
    'bytes=0-',
    'bytes=-1',
    'bytes=-0',
    'bytes=5-1',
    'bytes=0-0,2-3',
    'bytes=99999999999999999999-',
    'bytes=',
    'bytes=a-b',
    'lines=1-2',
    'bytes=0-99999999999',
    'bytes=-99999999999999999999',
    ' bytes = 0 - 1',
    'bytes=0x0-1',
    `bytes=${'0-0,'.repeat(1_000)}0-0`,
  ],
  'if-none-match': ['*', '"x"', 'W/"x"', '"a", "b"', 'x', '"', '""', `"${'a'.repeat(4_000)}"`],
  'if-range': ['"x"', 'W/"x"', 'Wed, 21 Oct 2015 07:28:00 GMT', 'x'],
};

/** Headers that no operation documents, or that every request may carry: to be ignored, or refused in good order. */
const EXTRA: Header[] = [
  ...Object.entries(RANGES).flatMap(([name, values]) => values.map((value): Header => [name, value])),
  ['Accept', 'text/plain'],
  ['Accept', 'application/json;q=0, */*;q=0'],
  ['Accept', ','],
  ['Accept-Encoding', 'gzip, br'],
  ['Accept-Encoding', 'identity;q=0'],
  ['If-Match', '*'],
  ['If-Modified-Since', 'yesterday'],
  ['If-Unmodified-Since', 'Thu, 01 Jan 1970 00:00:00 GMT'],
  ['Last-Event-ID', '0'.repeat(26)],
  ['Last-Event-ID', 'é'],
  ['Idempotency-Key', 'k'.repeat(129)],
  ['X-Forwarded-For', "127.0.0.1, '; drop"],
  ['X-Forwarded-Host', 'evil.example"/><script>'],
  ['X-Forwarded-Proto', 'gopher'],
  ['X-HTTP-Method-Override', 'DELETE'],
  ['Forwarded', 'for="[::1]";;;='],
  ['Origin', 'null'],
  ['Cookie', 'a=b; __proto__=1'],
  ['Content-Encoding', 'gzip'],
  ['Content-Encoding', 'br, deflate'],
  ['Content-Range', 'bytes 0-1/2'],
  ['X-Request-Id', 'é\t'],
  ['__proto__', 'x'],
  ['constructor', 'x'],
  ['Traceparent', '00-ffffffffffffffffffffffffffffffff-ffffffffffffffff-01'],
  ['X-Long', 'a'.repeat(6_000)],
];

export const extraHeaders: fc.Arbitrary<Aspect<Header[]>> = fc
  .array(fc.constantFrom(...EXTRA), { minLength: 1, maxLength: 3 })
  .map((value) => ({ value, expected: 'anything', why: `headers: ${value.map(([name]) => name).join(', ')}` }));
