import { isUtf8 } from 'node:buffer';
import { gzipSync } from 'node:zlib';
import type { Operation } from './document.ts';
import { NO_CALLERS, PAST_CALLERS } from './headers.ts';
import { TWISTS, type Expected } from './json-bodies.ts';
import { writeMultipart } from './multipart.ts';
import type { RequestPlan } from './requests.ts';
import { TRANSPORT_TWISTS } from './transport.ts';
import type { Pick } from './values.ts';

/** A request as it is sent: every id, token and byte of it known. */
export interface BuiltRequest {
  plan: RequestPlan;
  operation: Operation;
  method: string;
  /** Path and query. */
  target: string;
  headers: [string, string][];
  body: Buffer;
  /** The body, where it is JSON. */
  json: unknown;
  expected: Expected;
  /** Perhaps no request of this operation any more: of an unknown path, or not even HTTP. */
  isOffRoute: boolean;
  /** There is a token to give, and none that is valid is given. */
  lacksToken: boolean;
  bytes: Buffer;
}

/** What a plan leaves open. */
export interface Surroundings {
  /** Null: there is none such yet. */
  resolve(pick: Pick, plan: RequestPlan): string | null;
  tokens: Record<string, string>;
  host: string;
  basePath: string;
  /** The largest JSON body that this process takes. */
  bodyLimit: number;
}

export function buildRequest(plan: RequestPlan, surroundings: Surroundings): BuiltRequest {
  const resolve = (value: string | Pick): string => {
    if (typeof value === 'string') return value;
    const id = surroundings.resolve(value, plan) ?? NOTHING;
    return inCase(id, value);
  };
  const { bytes: body, contentType, json } = buildBody(plan, resolve, surroundings.bodyLimit);
  const target = surroundings.basePath + plan.path.map(resolve).join('') + buildQuery(plan, surroundings);
  const headers: [string, string][] = [
    ['Host', surroundings.host],
    ...authorization(plan, surroundings.tokens),
    ...plan.headers.map(([name, value]): [string, string] => [name, resolve(value)]),
    ...(contentType === null ? [] : [['Content-Type', contentType] satisfies [string, string]]),
    ...(body === null ? [] : [framing(plan, body)]),
  ];
  // Texts of a plan may be beyond Latin-1, bytes are not: what is written is their UTF-8.
  const lines = headers.map(([name, value]) => `${name}: ${asBytes(value)}`);
  const wire = { head: [`${plan.method} ${asBytes(target)} HTTP/1.1`, ...lines], body: frame(plan, body) };
  const isOverLimit = body !== null && body.length > surroundings.bodyLimit;
  return {
    plan,
    operation: plan.operation,
    method: plan.method,
    target,
    headers,
    body: body ?? Buffer.alloc(0),
    json,
    expected: isOverLimit && plan.expected === 'accepted' ? 'anything' : plan.expected,
    isOffRoute: isOffRoute(plan, target, wire.head),
    lacksToken: plan.operation.needsToken && (plan.caller in NO_CALLERS || PAST_CALLERS.includes(plan.caller)),
    bytes: TRANSPORT_TWISTS[plan.transport]!.apply(wire),
  };
}

/** More of a head than Node reads. */
const LONG_HEAD = 15_000;

function isOffRoute({ transport, method, operation, why }: RequestPlan, target: string, head: string[]): boolean {
  if (transport !== 'none' || method !== operation.method || why.some((one) => one.startsWith('path:'))) return true;
  return /[^!-~]/.test(target) || head.join('').length > LONG_HEAD;
}

const NOTHING = '0'.repeat(26);

const asBytes = (text: string): string => (/[^\0-\xff]/.test(text) ? Buffer.from(text).toString('latin1') : text);

function authorization({ caller }: RequestPlan, tokens: Record<string, string>): [string, string][] {
  const odd = NO_CALLERS[caller];
  const values = odd ? odd(tokens['own']!) : [`Bearer ${tokens[caller]!}`];
  return values.map((value) => ['Authorization', value]);
}

function buildQuery(plan: RequestPlan, surroundings: Surroundings): string {
  const pieces = plan.query.flatMap(({ text, value }) => {
    if (value === undefined) return [text];
    if (typeof value === 'string') return [text + encodeURIComponent(value)];
    const id = surroundings.resolve(value, plan) ?? (value.$pick === 'cursor' ? null : NOTHING);
    // Of what nobody can make up, there is none yet.
    return id === null ? [] : [text + inCase(id, value)];
  });
  return pieces.length === 0 ? '' : `?${pieces.join('&')}`;
}

/** Ids are taken in either case; what is none, as it stands. */
const inCase = (id: string, { lower }: Pick): string => (lower && /^\w{26}$/.test(id) ? id.toLowerCase() : id);

function buildBody({ body, contentType }: RequestPlan, resolve: (value: string | Pick) => string, limit: number) {
  if (body === null) return { bytes: null, contentType: contentType ?? null, json: undefined };
  if (body.kind === 'multipart') {
    const written = writeMultipart(body);
    return {
      bytes: written.bytes,
      contentType: contentType === undefined ? written.contentType : contentType,
      json: undefined,
    };
  }
  const twisted = TWISTS[body.twist]!.apply(writeJson(body.value, resolve), body.n, limit);
  const bytes = Buffer.from(twisted as string);
  return {
    bytes,
    contentType: contentType === undefined ? 'application/json' : contentType,
    json: body.twist === 'none' ? readJson(bytes) : undefined,
  };
}

/** JSON with what stands for ids and odd numbers put in. */
function writeJson(value: unknown, resolve: (value: string | Pick) => string): string {
  if (Array.isArray(value)) return `[${value.map((item) => writeJson(item, resolve)).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  if ('$raw' in value) return String(value.$raw);
  if ('$pick' in value) return JSON.stringify(resolve(value as Pick));
  const members = Object.entries(value).map(
    ([name, member]) => `${JSON.stringify(name)}:${writeJson(member, resolve)}`,
  );
  return `{${members.join(',')}}`;
}

function readJson(bytes: Buffer): unknown {
  return isUtf8(bytes) ? (JSON.parse(bytes.toString()) as unknown) : undefined;
}

const framing = ({ chunked }: RequestPlan, body: Buffer): [string, string] =>
  chunked ? ['Transfer-Encoding', 'chunked'] : ['Content-Length', String(body.length)];

const CHUNK = 16_000;

function frame({ chunked }: RequestPlan, body: Buffer | null): Buffer {
  if (body === null) return Buffer.alloc(0);
  if (!chunked) return body;
  const chunks: Buffer[] = [];
  for (let at = 0; at < body.length; at += CHUNK) {
    const chunk = body.subarray(at, at + CHUNK);
    chunks.push(Buffer.from(`${chunk.length.toString(16)}\r\n`), chunk, Buffer.from('\r\n'));
  }
  return Buffer.concat([...chunks, Buffer.from('0\r\n\r\n')]);
}

/** Characters of a request; the seed repeats what is longer. */
const MOST_SHOWN = 2_000;

/** The request for a person to repeat: exact, also where it is no HTTP. */
export function asShell({ bytes, plan, method, target, headers, body }: BuiltRequest, origin: string): string {
  const { host, hostname, port } = new URL(origin);
  const plain = /^[\x20-\x7e]*$/.test(body.toString('latin1')) && body.length < 20_000;
  const ascii = headers.every(([, value]) => /^[\x20-\x7e]*$/.test(value)) && /^[\x21-\x7e]*$/.test(target);
  if (plan.transport === 'none' && !(plan.chunked && body.length > 0) && plain && ascii) {
    const lines = headers
      .filter(([name]) => name !== 'Host' && name !== 'Content-Length')
      .map(([name, value]) => ` -H ${shellQuote(value === '' ? `${name};` : `${name}: ${value}`)}`);
    const data = body.length > 0 ? ` --data-binary ${shellQuote(body.toString())}` : '';
    return `curl -isS --path-as-is -X ${method}${lines.join('')}${data} ${shellQuote(`http://${host}${target}`)}`;
  }
  const packed = gzipSync(bytes).toString('base64');
  const start = `it begins ${JSON.stringify(bytes.subarray(0, 800).toString('latin1'))}`;
  if (packed.length > MOST_SHOWN) return `${bytes.length} bytes, too many to be shown here; ${start}`;
  return `echo ${packed} | base64 -d | gunzip | nc -q 5 ${hostname} ${port}\n${start}`;
}

const shellQuote = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;
