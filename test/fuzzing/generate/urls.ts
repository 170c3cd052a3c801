import fc from 'fast-check';
import type { Parameter, Schema } from './document.ts';
import type { Expected } from './json-bodies.ts';
import type { Aspect } from './headers.ts';
import { refusedText, strangerUlid, WRONG_ULIDS } from './strings.ts';
import { isUlid, pickOf, type Pick, type Values } from './values.ts';

/** `name=value` as written, nothing encoded any more; a pick is resolved and encoded when it is sent. */
export interface QueryPiece {
  text: string;
  value?: string | Pick;
}

type Pieces = (string | Pick)[];

/** Path segments that are no id; each leads to a refusal, on this route or off it. */
const ODD_SEGMENTS = [
  '',
  '.',
  '..',
  '%2e%2e',
  '%2F',
  'a/b',
  '%',
  '%zz',
  '%0',
  '%00',
  '%ff',
  '%c0%80',
  '%ed%a0%80',
  '%F0%9F%98%80',
  '%0d%0aX:1',
  '%20',
  '+',
  '*',
  ';a=b',
  ':id',
  '{threadId}',
  '%25',
  '%252F',
  '~',
  '"',
  '<>',
  '\\',
  '|',
  '\u00ff\u00fe',
  'a'.repeat(12_000),
  '__proto__',
  'constructor',
];

const encodedStart = (id: string): string => `%${id.charCodeAt(0).toString(16)}${id.slice(1)}`;

/** The operation's path with ids in it: mostly such as exist. */
export function pathParts(template: string, parameters: Parameter[], values: Values): fc.Arbitrary<Aspect<Pieces>> {
  const names = [...template.matchAll(/\{(\w+)\}/g)].map(([, name]) => name!);
  const fixed = template.split(/\{\w+\}/);
  const chosen = names.map((name) =>
    segment(name, parameters.find((parameter) => parameter.name === name)!.schema, values),
  );
  const odd = fc
    .constantFrom('/', '//', '/x', '%', '/.')
    .map((end): Aspect<Pieces> => ({ value: [end], expected: 'anything', why: `path: ends with ${end}` }));
  const none = fc.constant<Aspect<Pieces>>({ value: [''], expected: 'accepted', why: '' });
  const ending = fc.oneof({ weight: 120, arbitrary: none }, { weight: 1, arbitrary: odd });
  return fc.tuple(fc.tuple(...chosen), ending).map(([segments, end]) => {
    const pieces = fixed.flatMap((text, i) => [text, ...(segments[i]?.value ?? [])]);
    const all = [...segments, end];
    return {
      value: [...pieces, ...end.value],
      expected: worst(all.map(({ expected }) => expected)),
      why: all
        .map(({ why }) => why)
        .filter((why) => why !== '')
        .join('; '),
    };
  });
}

const worst = (all: Expected[]): Expected =>
  all.includes('refused') ? 'refused' : all.includes('anything') ? 'anything' : 'accepted';

function segment(name: string, schema: Schema, values: Values): fc.Arbitrary<Aspect<Pieces>> {
  const good = (isUlid(schema) ? pickOf(name) : (values.valid(schema, name) as fc.Arbitrary<string>)).map(
    (value): Aspect<Pieces> => ({ value: [value], expected: 'accepted', why: '' }),
  );
  const stranger = strangerUlid.map((value): Aspect<Pieces> => ({ value: [value], expected: 'accepted', why: '' }));
  const encoded = strangerUlid.map((id): Aspect<Pieces> => ({
    value: [encodedStart(id)],
    expected: 'anything',
    why: 'path: encoded',
  }));
  const wrong = fc
    .constantFrom(...WRONG_ULIDS.map((id) => encodeURIComponent(id)), ...ODD_SEGMENTS)
    .map((value): Aspect<Pieces> => ({
      value: [value],
      expected: 'refused',
      why: `path: ${name} ${value.slice(0, 40)}`,
    }));
  return fc.oneof(
    { weight: 90, arbitrary: good },
    { weight: 3, arbitrary: stranger },
    { weight: 1, arbitrary: encoded },
    { weight: 6, arbitrary: wrong },
  );
}

const UNKNOWN_PIECES = [
  'x=1',
  '__proto__=1',
  '__proto__[a]=1',
  'constructor=1',
  'constructor[prototype]=1',
  'toString=1',
  '=',
  '=1',
  '&&&',
  '?',
  '%zz',
  '%',
  'a=%',
  'a=%ff',
  'a=%00',
  'a=\u00ff',
  '%F0%9F%98%80=1',
  'a'.repeat(3_000),
  'a=1;b=2',
  Array.from({ length: 1_200 }, (_, i) => `a${i}`).join('&'),
  'access_token=x',
];

/** The query parameters of an operation: none, some, wrong ones, and what is not documented. */
export function queries(parameters: Parameter[], values: Values): fc.Arbitrary<Aspect<QueryPiece[]>> {
  const absent = fc.constant<Aspect<QueryPiece[]>>({ value: [], expected: 'accepted', why: '' });
  const each = parameters.map((parameter) => {
    const present = queryParameter(parameter, values);
    return parameter.required ? present : fc.oneof({ weight: 6, arbitrary: absent }, { weight: 4, arbitrary: present });
  });
  const unknown = fc.constantFrom(...UNKNOWN_PIECES).map((text): Aspect<QueryPiece[]> => ({
    value: [{ text }],
    expected: 'anything',
    why: `query: ${text.slice(0, 40)}`,
  }));
  const more = fc.oneof({ weight: 40, arbitrary: absent }, { weight: 1, arbitrary: unknown });
  return fc.tuple(...each, more).map((all) => {
    const value = all.flatMap((aspect) => aspect.value);
    return {
      value,
      expected: worst([...all.map(({ expected }) => expected), excludeEachOther(value) ? 'anything' : 'accepted']),
      why: all
        .map(({ why }) => why)
        .filter((why) => why !== '')
        .join('; '),
    };
  });
}

/** A rule between fields that the document can only say in words. */
const excludeEachOther = (pieces: QueryPiece[]): boolean =>
  ['after=', 'before='].every((start) => pieces.some(({ text }) => text.startsWith(start)));

function queryParameter({ name, schema }: Parameter, values: Values): fc.Arbitrary<Aspect<QueryPiece[]>> {
  const good = values
    .valid(schema, name)
    .map((value): Aspect<QueryPiece[]> => ({ value: [goodPiece(name, value)], expected: 'accepted', why: '' }));
  const wrong = wrongQueryValues(schema).map((value): Aspect<QueryPiece[]> => ({
    value: [{ text: `${name}=${encodeURIComponent(value)}` }],
    expected: 'refused',
    why: `query: ${name}=${value.slice(0, 40)}`,
  }));
  const odd = fc
    .tuple(values.valid(schema, name), fc.constantFrom('twice', 'brackets', 'no value', 'upper case', 'number as text'))
    .map(([value, how]): Aspect<QueryPiece[]> => ({
      value: oddPieces(name, goodPiece(name, value), how),
      expected: 'anything',
      why: `query: ${name} ${how}`,
    }));
  return fc.oneof({ weight: 16, arbitrary: good }, { weight: 3, arbitrary: wrong }, { weight: 1, arbitrary: odd });
}

function goodPiece(name: string, value: unknown): QueryPiece {
  if (typeof value === 'object' && value !== null && '$pick' in value)
    return { text: `${name}=`, value: value as Pick };
  // A number is written as digits in a query, whatever JSON allows besides.
  const text =
    typeof value === 'object' && value !== null && '$raw' in value ? String(Number(value.$raw)) : String(value);
  return { text: `${name}=`, value: text };
}

function oddPieces(name: string, piece: QueryPiece, how: string): QueryPiece[] {
  switch (how) {
    case 'twice':
      return [piece, piece];
    case 'brackets':
      return [
        { ...piece, text: `${name}[]=` },
        { ...piece, text: `${name}[0]=` },
      ];
    case 'no value':
      return [{ text: name }];
    case 'upper case':
      return [{ ...piece, text: `${name.toUpperCase()}=` }];
    default:
      return [{ text: `${name}=1.0` }];
  }
}

const WRONG_INTEGERS = [
  '',
  ' 1',
  '1 ',
  '+1',
  '1e2',
  '0x10',
  '٣',
  '１',
  '1,2',
  'NaN',
  'Infinity',
  '99999999999999999999',
  '1\0',
  '--1',
  'null',
  'true',
  '[1]',
  '1.5',
];

function wrongQueryValues(schema: Schema): fc.Arbitrary<string> {
  if (isUlid(schema)) return fc.constantFrom(...WRONG_ULIDS.filter((id) => id.length < 5_000), '');
  const { type, items, minimum, maximum, enum: values, const: constant } = schema;
  // Its values are separated by commas.
  if (type === 'array' && items) return wrongQueryValues(items);
  if (values || constant !== undefined) {
    const known = (values ?? [constant]).map(String);
    const other = known.flatMap((text) => [text.toUpperCase(), `${text} `, `${text}\0`]);
    return fc.constantFrom(...[...other, '', 'other', '0'].filter((text) => !known.includes(text)));
  }
  if (type === 'integer' || type === 'number') {
    const beyond = [...(minimum === undefined ? [] : [minimum - 1]), ...(maximum === undefined ? [] : [maximum + 1])];
    return fc.constantFrom(...WRONG_INTEGERS, ...beyond.map(String));
  }
  // A lone surrogate cannot be written in a URL.
  return refusedText(schema).filter((text) => !/\p{Surrogate}/u.test(text));
}
