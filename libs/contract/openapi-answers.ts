import { components } from './components.ts';
import { REASON_HEADER, reasonsOf, THREAD_HEADER } from './error-reasons.ts';
import { LAST_EVENT_HEADER } from './sse.ts';
import { ERRORS, type ErrorCode } from './errors.ts';
import { MESSAGE_EXAMPLES, STREAM_EXAMPLE, type Example } from './openapi-examples.ts';
import { BYTES, refTo, SchemaWriter, type Json } from './openapi-document.ts';
import type { Operation } from './operation.ts';

export const schemas = new SchemaWriter(components);

type Examples = Record<string, Example<unknown>> | undefined;

export const jsonContent = (schema: Json, examples?: Examples): Json => ({
  'application/json': { schema, ...(examples && { examples }) },
});

const header = (description: string, schema: Json, required = false) => ({
  description,
  ...(required ? { required } : {}),
  schema,
});
const text = (description: string, required = false) => header(description, { type: 'string' }, required);
const seconds = (description: string, required = false) =>
  header(description, { type: 'integer', minimum: 1 }, required);

/** The headers of every answer that comes after the check of the token. */
const rateLimits = (required: boolean): Json => ({
  'RateLimit-Limit': header('Requests in a window of 60 s.', { type: 'integer', minimum: 1 }, required),
  'RateLimit-Remaining': header('Requests left in this window.', { type: 'integer', minimum: 0 }, required),
  'RateLimit-Reset': seconds('Seconds until the window ends.', required),
});

const requestId = (required: boolean) =>
  header(
    'Id of the request in the service’s log.',
    { type: 'string', format: 'ulid', pattern: '^[0-7][0-9A-HJKMNP-TV-Z]{25}$' },
    required,
  );

const STREAM_HEADERS = { 'Cache-Control': text('`no-store, no-transform`.', true) };

/** The headers of the bytes, and of the answer that they have not changed. */
const VALIDATORS = {
  ETag: text(
    'Strong validator: two ETags are equal if and only if the bytes are. The ETag of an attachment never changes. The ETag of an artifact changes when its Agent writes other bytes.',
    true,
  ),
  'Accept-Ranges': header('Byte ranges are supported.', { const: 'bytes' }, true),
  'Cache-Control': text('`private, no-cache`: cache the response and revalidate it with `If-None-Match`.', true),
};

const DOWNLOAD_HEADERS = {
  ...VALIDATORS,
  'Content-Disposition': text('`disposition` and the file’s name (RFC 6266, any Unicode).', true),
  'Content-Length': header(
    'Number of bytes in the body; for HEAD, in the body of GET.',
    { type: 'integer', minimum: 0 },
    true,
  ),
  'X-Content-Type-Options': header('Browsers must not guess the type.', { const: 'nosniff' }, true),
};

const STREAM = `Frames of \`text/event-stream\`:
- first \`: connected\` and \`retry: <milliseconds>\`, two lines without a blank line after them
- \`event: thread.event\`, \`id\` the entry’s id, \`data\` a ThreadEventLogEntry
- \`: keepalive\` after 15 s without an event, also one line
- \`event: thread.error\`, \`data\` an error. The stream ends: the token was revoked or expired, access was withdrawn, or the Thread was deleted
- \`event: thread.idle\`, \`data\` an empty object. The stream ends: only with \`?until=idle\`, when no Run is active and all entries are sent

\`\`\`text
${STREAM_EXAMPLE}\`\`\``;

const AT_REST =
  'With `until=idle`, if `Last-Event-ID` or `after` is the last entry and no Run is active. An EventSource stops reconnecting.';

const LAST_EVENT =
  'The id of the last entry when the stream was opened; 26 zeros if there was none. Once this entry or a later one has arrived, the past has been sent. Only with `extended=true`.';

/** New reasons may come, so their list is no enum. */
const reason = (reasons: readonly string[]) =>
  header(
    `The cause of the error, more precise than its code: ${reasons.map((name) => `\`${name}\``).join(', ')}. More may follow.`,
    { type: 'string', pattern: '^[a-z]+(_[a-z]+)*$' },
    true,
  );

/** Returns the successful responses of an operation by status. */
export function describeSuccess(operation: Operation, examples: Examples): Json {
  const { answer, status, summary, takesIdempotencyKey } = operation;
  const limits = rateLimits(true);
  switch (answer) {
    case 'bytes': {
      const headers = { ...limits, ...DOWNLOAD_HEADERS };
      const range = { ...headers, 'Content-Range': text('`bytes <first>-<last>/<size>`.', true) };
      const content = { 'application/octet-stream': { schema: BYTES } };
      return {
        [status]: { description: 'The whole file.', headers, content },
        206: { description: 'The requested range.', headers: range, content },
        304: { description: 'The bytes have not changed.', headers: { ...limits, ...VALIDATORS } },
      };
    }
    case 'event_stream': {
      // OpenAPI 3.1 cannot describe a stream; generators use the schema for `data`.
      const content = { 'text/event-stream': { schema: { $ref: refTo('ThreadEventLogEntry') } } };
      const headers = { ...limits, ...STREAM_HEADERS };
      const newest = { [LAST_EVENT_HEADER]: text(LAST_EVENT) };
      return {
        [status]: { description: STREAM, headers: { ...headers, ...newest }, content },
        204: { description: AT_REST, headers },
      };
    }
    default: {
      const headers = { ...limits, ...(takesIdempotencyKey ? { 'Idempotency-Replayed': REPLAYED } : {}) };
      return { [status]: { description: summary, headers, content: jsonContent(schemas.describe(answer), examples) } };
    }
  }
}

const REPLAYED = header('`true` if this is the stored response, byte for byte.', { const: 'true' });

interface Refusal {
  /** In `components.responses`: the response classes of docs/spec/agent-threads-api.md#errors. */
  name: string;
  status: number;
  codes: readonly ErrorCode[];
  /** The meaning here, if it differs from the meaning of the code. */
  note?: string;
  /** As `note`, in the example. */
  message?: string;
  headers?: Json;
  /** It may also come before the token is checked: for a request that is not HTTP, or while the database is unavailable. */
  early?: boolean;
}

const OF_AGENT = ['agent_not_published', 'service_inactive'] as const;
const RETRY_WHERE_BUSY = { 'Retry-After': seconds('Seconds to wait. Sent if the same request may succeed later.') };

/** Every answer that an operation can refuse with; which has which: `refusalsOf`. */
const REFUSALS = {
  400: { name: 'InvalidRequest', status: 400, codes: ['invalid_request', 'invalid_json'], early: true },
  401: {
    name: 'Unauthenticated',
    status: 401,
    codes: ['unauthenticated'],
    headers: { 'WWW-Authenticate': header('How to authenticate.', { const: 'Bearer' }, true) },
  },
  403: { name: 'Forbidden', status: 403, codes: ['forbidden'] },
  404: { name: 'NotFound', status: 404, codes: ['not_found'] },
  agentAway: { name: 'AgentAway', status: 409, codes: OF_AGENT },
  conflict: {
    name: 'Conflict',
    status: 409,
    codes: [...OF_AGENT, 'idempotency_conflict'],
    headers: RETRY_WHERE_BUSY,
  },
  runConflict: {
    name: 'RunConflict',
    status: 409,
    codes: [...OF_AGENT, 'readiness_blocked', 'idempotency_conflict'],
    headers: {
      ...RETRY_WHERE_BUSY,
      [THREAD_HEADER]: text('The Thread that has the `externalRef`. Sent with the reason `reference_taken`.'),
    },
  },
  410: {
    name: 'ContentLost',
    status: 410,
    codes: ['not_found'],
    note: 'The file exists, but the file storage has lost its bytes.',
    message: 'The file storage has lost the bytes of this file. Upload it again, or ask the operator.',
  },
  412: {
    name: 'PreconditionFailed',
    status: 412,
    codes: ['idempotency_conflict'],
    note: 'The file’s ETag does not satisfy `If-Match` or `If-None-Match`. Nothing was done.',
    message: 'If-Match failed: the file’s ETag is "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824".',
    headers: { ETag: text('The ETag of the current bytes.', true) },
  },
  413: {
    name: 'TooLarge',
    status: 413,
    codes: ['invalid_request'],
    note: 'The body or its file is too large, or exceeds the organization’s file quota.',
    message: 'The body is too large.',
  },
  415: {
    name: 'WrongType',
    status: 415,
    codes: ['invalid_request'],
    note: 'The body is compressed, or its type is not accepted by this operation (JSON if the operation has no body).',
    message: 'Unsupported Content-Type; send application/json.',
  },
  416: {
    name: 'RangeNotSatisfiable',
    status: 416,
    codes: ['invalid_request'],
    note: 'The range is outside the file.',
    message: 'Range: is outside the file',
    headers: { ...VALIDATORS, 'Content-Range': text('`bytes */<size>`.', true) },
  },
  429: {
    name: 'RateLimited',
    status: 429,
    codes: ['rate_limited'],
    note: 'Too many requests in this window, open streams or drafts.',
    headers: { 'Retry-After': seconds('Seconds to wait.', true) },
  },
  500: { name: 'InternalError', status: 500, codes: ['internal_error'], early: true },
  503: {
    name: 'Unavailable',
    status: 503,
    codes: ['internal_error'],
    note: 'The database or the file storage does not answer: nothing was done, or the outcome is unknown. Or the process has reached its limit of open streams.',
    message: 'The service cannot reach its database. Try again.',
    headers: { 'Retry-After': seconds('Seconds to wait.', true) },
    early: true,
  },
} as const satisfies Record<string, Refusal>;

/** Operations that make a Run: only they need the Agent to be ready. */
const MAKING_RUNS = new Set(['createThread', 'sendEvents', 'retryRun']);

/** Returns the refusals of an operation, by status. */
export function refusalsOf(name: string, { method, answer, takesIfMatch }: Operation): Json {
  // No state of a Thread refuses reads or its deletion. The Agent does not refuse the deletion either, but
  // every operation has to document a conflict (docs/spec/agent-threads-api.md#errors).
  const isBound = method !== 'GET' && name !== 'deleteThread';
  const conflict = MAKING_RUNS.has(name) ? 'runConflict' : isBound ? 'conflict' : 'agentAway';
  const keys: (keyof typeof REFUSALS)[] = [
    ...([400, 401, 403, 404, conflict] as const),
    ...(answer === 'bytes' ? ([410] as const) : []),
    ...(takesIfMatch ? ([412] as const) : []),
    // Of every method that may have a body: one that is not taken is read all the same.
    ...(method === 'GET' ? [] : ([413, 415] as const)),
    ...(answer === 'bytes' ? ([416] as const) : []),
    ...([429, 500, 503] as const),
  ];
  const refusals = keys.map((key) => REFUSALS[key]);
  return Object.fromEntries(refusals.map(({ status, name: id }) => [status, refusal(id)]));
}

export const refusal = (name: (typeof REFUSALS)[keyof typeof REFUSALS]['name']): Json => ({
  $ref: `#/components/responses/${name}`,
});

export function describeRefusals(): Json {
  return Object.fromEntries(
    Object.values<Refusal>(REFUSALS).map((refusal) => [refusal.name, describeRefusal(refusal)]),
  );
}

function describeRefusal({ status, codes, note, message, headers, early = false }: Refusal): Json {
  const examples = codes.map((code): [string, Example<unknown>] => [
    code,
    { summary: code, value: { error: { code, message: message ?? MESSAGE_EXAMPLES[code] } } },
  ]);
  return {
    description: codes.map((code) => `\`${code}\`: ${note ?? ERRORS[code].meaning}`).join(' '),
    headers: {
      'X-Request-Id': requestId(!early),
      [REASON_HEADER]: reason(reasonsOf(status, codes)),
      ...rateLimits(!early),
      ...headers,
    },
    content: jsonContent({ $ref: refTo('ErrorEnvelope') }, Object.fromEntries(examples)),
  };
}
