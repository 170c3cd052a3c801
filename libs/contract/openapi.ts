import { z } from 'zod';
import { ERRORS, type ErrorCode } from './errors.ts';
import { operations, type Operation } from './operations.ts';
import { components } from './records.ts';
import { idempotencyKey } from './requests.ts';

type Json = Record<string, unknown>;

const ref = (id: string) => `#/components/schemas/${id}`;

/** The OpenAPI 3.1 document of every operation that exists, made from the schemas that requests are checked with. */
export function openApiDocument(serverUrl: string): Json {
  return {
    openapi: '3.1.0',
    info: {
      title: 'Agent Threads API',
      version: '1',
      description: 'Calls published Agents through durable Threads. Errors are listed in docs/api/errors.md.',
    },
    servers: [{ url: serverUrl }],
    security: [{ token: [] }],
    paths: describePaths(),
    components: {
      securitySchemes: { token: { type: 'http', scheme: 'bearer', description: 'Human PAT or service token.' } },
      schemas: describeComponents(),
      responses: Object.fromEntries(ERROR_ANSWERS.map((answer) => [String(answer.status), describeError(answer)])),
    },
  };
}

function describePaths(): Json {
  const paths: Record<string, Json> = {};
  for (const [name, operation] of Object.entries<Operation>(operations)) {
    (paths[operation.path] ??= {})[operation.method.toLowerCase()] = describeOperation(name, operation);
  }
  paths['/openapi.json'] = {
    get: {
      operationId: 'getOpenApi',
      summary: 'Read this document',
      security: [],
      responses: { 200: { description: 'This document.', content: { 'application/json': { schema: {} } } } },
    },
  };
  return paths;
}

function describeOperation(name: string, operation: Operation): Json {
  const { summary, description, params, query, body, status, takesIdempotencyKey, answer } = operation;
  const errors = ERROR_ANSWERS.filter(({ withBody }) => body !== null || !withBody);
  return {
    operationId: name,
    summary,
    ...(description === undefined ? {} : { description }),
    parameters: [
      ...describeParameters(params, 'path'),
      ...describeParameters(query, 'query'),
      ...(takesIdempotencyKey ? [IDEMPOTENCY_KEY] : []),
      ...(answer === null ? [LAST_EVENT_ID] : []),
    ],
    ...(body === null ? {} : { requestBody: { required: true, content: jsonContent(body) } }),
    responses: {
      [status]: {
        description: summary,
        ...(takesIdempotencyKey ? { headers: { 'Idempotency-Replayed': REPLAYED } } : {}),
        content: answer === null ? { 'text/event-stream': { schema: { type: 'string' } } } : jsonContent(answer),
      },
      ...Object.fromEntries(errors.map((error) => [error.status, { $ref: `#/components/responses/${error.status}` }])),
    },
  };
}

const IDEMPOTENCY_KEY = {
  name: 'Idempotency-Key',
  in: 'header',
  required: false,
  description: 'The same key with the same request gives the stored answer.',
  schema: schemaOf(idempotencyKey),
};

const LAST_EVENT_ID = {
  name: 'Last-Event-ID',
  in: 'header',
  required: false,
  description: 'Resumes strictly after this event id; `limit` is ignored.',
  schema: { type: 'string', format: 'ulid' },
};

const REPLAYED = { description: '`true` where the stored answer is given again.', schema: { const: 'true' } };

function describeParameters(schema: z.ZodObject, place: 'path' | 'query'): Json[] {
  return Object.entries(schema.shape).map(([name, field]) => {
    const { description, ...fieldSchema } = schemaOf(field as z.ZodType);
    const required = place === 'path';
    return { name, in: place, required, ...(description === undefined ? {} : { description }), schema: fieldSchema };
  });
}

function jsonContent(schema: z.ZodType): Json {
  const id = components.get(schema)?.id;
  return { 'application/json': { schema: id === undefined ? schemaOf(schema) : { $ref: ref(id) } } };
}

function schemaOf(schema: z.ZodType): Json {
  const { $schema: _, ...json } = z.toJSONSchema(schema);
  return json;
}

function describeComponents(): Json {
  const { schemas } = z.toJSONSchema(components, { uri: ref });
  const described = Object.entries(schemas).map(([id, { $schema: _, $id: __, ...schema }]) => [id, schema]);
  return Object.fromEntries(described) as Json;
}

interface ErrorAnswer {
  status: number;
  codes: ErrorCode[];
  headers?: Json;
  /** Only where a body is taken. */
  withBody?: boolean;
}

const seconds = (description: string) => ({ description, schema: { type: 'integer', minimum: 1 } });

/** Every status that an operation can refuse with. */
const ERROR_ANSWERS: readonly ErrorAnswer[] = [
  { status: 400, codes: ['invalid_request', 'invalid_json'] },
  { status: 401, codes: ['unauthenticated'], headers: { 'WWW-Authenticate': { schema: { type: 'string' } } } },
  { status: 403, codes: ['forbidden'] },
  { status: 404, codes: ['not_found'] },
  {
    status: 409,
    codes: ['agent_not_published', 'service_inactive', 'readiness_blocked', 'idempotency_conflict'],
    headers: { 'Retry-After': seconds('Where the request may be repeated as it is.') },
  },
  { status: 413, codes: ['invalid_request'], withBody: true },
  { status: 415, codes: ['invalid_request'], withBody: true },
  { status: 429, codes: ['rate_limited'], headers: { 'Retry-After': seconds('Seconds to wait.') } },
  { status: 500, codes: ['internal_error'] },
  { status: 503, codes: ['internal_error'], headers: { 'Retry-After': seconds('Seconds to wait.') } },
];

const STATUS_NOTES: Record<number, string> = {
  413: 'The body is larger than is accepted.',
  415: 'The body is not `application/json`.',
  503: 'The database does not answer. Repeat the request.',
};

function describeError({ status, codes, headers }: ErrorAnswer): Json {
  const meanings = codes.map((code) => `\`${code}\`: ${ERRORS[code].meaning}`);
  return {
    description: STATUS_NOTES[status] ?? meanings.join(' '),
    ...(headers === undefined ? {} : { headers }),
    content: { 'application/json': { schema: { $ref: ref('Error') } } },
  };
}
