import fc from 'fast-check';
import type { Operation, Parameter, Schema } from './document.ts';
import { operationsOf, type ApiDocument } from './document.ts';
import { jsonBodies, type BodyChoice, type Expected, type JsonBody } from './json-bodies.ts';
import { multipartBodies, type MultipartBody } from './multipart.ts';
import { credentials, extraHeaders, headerValues, type Aspect, type Header } from './headers.ts';
import { pathParts, queries, type QueryPiece } from './urls.ts';
import { TRANSPORT_TWISTS } from './transport.ts';
import { Values, type Pick } from './values.ts';

/** A request before it is known which ids exist: pure, so that a seed repeats it. */
export interface RequestPlan {
  operation: Operation;
  method: string;
  /** Pieces of the path, joined by nothing. */
  path: (string | Pick)[];
  query: QueryPiece[];
  headers: Header[];
  /** Whose token, or what stands in its place (headers.ts). */
  caller: string;
  body: JsonBody | MultipartBody | null;
  /** Undefined: the one that fits the body. */
  contentType: string | null | undefined;
  chunked: boolean;
  /** A name of TRANSPORT_TWISTS. */
  transport: string;
  /** Which of the processes under test gets it. */
  api: number;
  expected: Expected;
  /** What is odd about it; empty for a request that is all right. */
  why: string[];
}

/** Requests of every operation in the document, and of nothing else: a new route needs nothing here. Or only of some. */
export function requestPlans(document: ApiDocument, only?: readonly Operation[]): fc.Arbitrary<RequestPlan> {
  const values = new Values(document);
  const operations = operationsOf(document);
  return fc.oneof(
    ...(only ?? operations).map((operation) => ({
      weight: weightOf(operation),
      arbitrary: plansOf(operation, values, operations),
    })),
  );
}

/** What makes things comes more often than what removes them, and what has a body has more that can be wrong. */
const weightOf = ({ method, body, parameters }: Operation): number =>
  parameters.length === 0 ? 1 : body !== null ? 6 : method === 'DELETE' ? 2 : 3;

/** Mostly right, so that the odd ones have something to meet; only seldom odd in two places. */
function seldom<T>(
  right: fc.Arbitrary<Aspect<T>>,
  odd: fc.Arbitrary<Aspect<T>>,
  share: number,
): fc.Arbitrary<Aspect<T>> {
  return fc.oneof({ weight: 100 - share, arbitrary: right }, { weight: share, arbitrary: odd });
}

const right = <T>(value: T): fc.Arbitrary<Aspect<T>> => fc.constant({ value, expected: 'accepted', why: '' });

function plansOf(operation: Operation, values: Values, all: Operation[]): fc.Arbitrary<RequestPlan> {
  const { parameters } = operation;
  const inPlace = (place: Parameter['in']) => parameters.filter((parameter) => parameter.in === place);
  const aspects = {
    method: seldom(right(operation.method), otherMethods(operation, all), 2),
    path: pathParts(operation.path, inPlace('path'), values),
    query: queries(inPlace('query'), values),
    headers: headerValues(inPlace('header')),
    extra: seldom(right<Header[]>([]), extraHeaders, 6),
    caller: operation.needsToken ? credentials(operation.name) : right('own'),
    transport: seldom(right('none'), transportTwists, 3),
    body: bodies(operation, values),
  };
  return fc
    .record({ ...aspects, api: fc.nat(1), chunked: fc.integer({ min: 0, max: 9 }) })
    .map(({ api, chunked, ...chosen }) => ({
      operation,
      method: chosen.method.value,
      path: chosen.path.value,
      query: chosen.query.value,
      headers: [...chosen.headers.value, ...chosen.extra.value],
      caller: chosen.caller.value,
      body: chosen.body.value.body,
      contentType: chosen.body.value.contentType,
      chunked: chunked === 9,
      transport: chosen.transport.value,
      api,
      // HEAD goes where GET goes, and asks for nothing else.
      expected:
        chosen.method.value === 'HEAD' && operation.method !== 'HEAD'
          ? 'anything'
          : together(Object.values(chosen).map(({ expected }) => expected)),
      why: Object.values(chosen).flatMap(({ why }) => (why === '' ? [] : [why])),
    }));
}

function together(all: Expected[]): Expected {
  if (all.includes('refused')) return 'refused';
  return all.includes('anything') ? 'anything' : 'accepted';
}

const transportTwists: fc.Arbitrary<Aspect<string>> = fc
  .constantFrom(...Object.keys(TRANSPORT_TWISTS).filter((name) => name !== 'none'))
  .map((value) => ({ value, expected: 'anything', why: `transport: ${value}` }));

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'PROPFIND', 'QUERY', 'PURGE', 'HEAD'];

function otherMethods({ path }: Operation, all: Operation[]): fc.Arbitrary<Aspect<string>> {
  const taken = all.filter((operation) => operation.path === path).map(({ method }) => method);
  return fc.constantFrom(...METHODS.filter((method) => !taken.includes(method))).map((value) => ({
    value,
    // GET and HEAD go together in HTTP.
    expected: value === 'HEAD' ? 'anything' : 'refused',
    why: `method: ${value}`,
  }));
}

interface BodyAndType {
  body: JsonBody | MultipartBody | null;
  contentType: string | null | undefined;
}

const JSON_TYPE = 'application/json';

function bodies({ body, name }: Operation, values: Values): fc.Arbitrary<Aspect<BodyAndType>> {
  if (body === null) return seldom(right({ body: null, contentType: undefined }), bodyForNone, 3);
  const made = Object.entries(body.content).map(([type, schema]) => bodiesOf(type, schema, values, name));
  const typed = fc.oneof(...made).map(({ body, expected, why }) => ({
    value: { body, contentType: undefined },
    expected,
    why,
  }));
  const missing = right<BodyAndType>({ body: null, contentType: undefined }).map((aspect) => ({
    ...aspect,
    expected: body.required ? ('refused' as const) : ('accepted' as const),
    why: 'body: missing',
  }));
  const json = body.content[JSON_TYPE];
  const otherTypes =
    json === undefined ? missing : contentTypes(bodiesOf(JSON_TYPE, json, values, name), Object.keys(body.content));
  return fc.oneof(
    { weight: 90, arbitrary: typed },
    { weight: 1, arbitrary: missing },
    { weight: 6, arbitrary: otherTypes },
  );
}

function bodiesOf(
  type: string,
  schema: Schema,
  values: Values,
  name: string,
): fc.Arbitrary<BodyChoice<JsonBody | MultipartBody>> {
  if (type === JSON_TYPE) return jsonBodies(values, schema, name);
  if (type === 'multipart/form-data') return multipartBodies(schema);
  throw new Error(`The document has a body of type ${type}; generate it in test/fuzzing/generate/requests.ts.`);
}

const GOOD_TYPES = ['application/json; charset=utf-8', 'Application/JSON;charset="UTF-8"'];
const OTHER_TYPES = [
  'text/plain',
  'application/xml',
  'application/jsonx',
  'application/x-www-form-urlencoded',
  'text/json',
  'json',
  '*/*',
  null,
];
const DOUBTFUL_TYPES = [
  'application/json; charset=utf-16',
  'application/json;;;',
  'application/json, text/plain',
  'application/merge-patch+json',
  ' ',
  'application/json; charset=\u00e9',
  '/',
  'multipart/form-data',
  `application/json;${' '.repeat(5_000)}a=b`,
];

function contentTypes(
  bodies: fc.Arbitrary<BodyChoice<JsonBody | MultipartBody>>,
  known: string[],
): fc.Arbitrary<Aspect<BodyAndType>> {
  const as = (types: (string | null)[], expected: Expected) =>
    fc.tuple(bodies, fc.constantFrom(...types)).map(([{ body, why, ...inner }, contentType]) => ({
      value: { body, contentType },
      expected: together([inner.expected, expected]),
      why: [why, `content-type: ${contentType}`].filter((part) => part !== '').join('; '),
    }));
  const others = OTHER_TYPES.filter((type) => type === null || !known.includes(type));
  return fc.oneof(as(GOOD_TYPES, 'accepted'), as(others, 'refused'), as(DOUBTFUL_TYPES, 'anything'));
}

/** Where none is taken, one may be ignored or refused. */
const bodyForNone: fc.Arbitrary<Aspect<BodyAndType>> = fc
  .tuple(
    fc.constantFrom<unknown>({}, [], 'text', { extra: 1 }),
    fc.constantFrom(undefined, 'text/plain', null, 'multipart/form-data'),
    fc.boolean(),
  )
  .map(([value, contentType, empty]) => ({
    value: { body: { kind: 'json', value, twist: empty ? 'empty' : 'none', n: 0 }, contentType },
    expected: 'anything',
    why: 'body: where none is taken',
  }));
