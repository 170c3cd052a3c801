import type { z } from 'zod';
import {
  describeComponents,
  describeRefusals,
  describeSuccess,
  jsonContent,
  refusal,
  refusalsOf,
  schemaOf,
} from './openapi-answers.ts';
import { addCompatibilityFields } from './openapi-compatibility.ts';
import { ANSWER_EXAMPLES, BODY_EXAMPLES, EXAMPLE_IDS, type Example } from './openapi-examples.ts';
import { BYTES, openAnswers, type Json } from './openapi-schemas.ts';
import { operations, type Operation } from './operations.ts';
import { extended, idempotencyKey } from './requests.ts';
import { ulid } from './scalars.ts';

/**
 * Returns the OpenAPI 3.1 document of all operations, generated from the schemas that check requests. A test keeps
 * docs/api/openapi.json equal to it. `compatibility`: with the older fields (docs/api/compatibility.md).
 */
export function openApiDocument(serverUrl: string, { compatibility = false } = {}): Json {
  const document = {
    openapi: '3.1.0',
    info: { title: 'Agent Threads API', version: '1', description: INTRODUCTION },
    servers: [{ url: serverUrl }],
    security: [{ token: [] }],
    tags: Object.entries(TAGS).map(([name, description]) => ({ name, description })),
    paths: describePaths(),
    components: {
      securitySchemes: {
        token: {
          type: 'http',
          scheme: 'bearer',
          description:
            'The token of a person (`…_pat_…`) or of a service (`…_svc_…`). It identifies the caller and has no scopes.',
        },
      },
      schemas: describeComponents(),
      responses: describeRefusals(),
    },
  };
  return openAnswers(compatibility ? addCompatibilityFields(document) : document);
}

const INTRODUCTION = `Calls published Agents through durable Threads.

A Thread is a conversation. A message to it queues a Run, one execution of the Agent, and the response is immediate. What happens next is in the Thread’s event log. Read it as a list or as a stream.

- **Ids** are ULIDs, accepted in upper or lower case and returned in upper case. **Times** are RFC 3339 in UTC with milliseconds.
- **Lengths** of text count Unicode characters. NUL and lone surrogates are rejected.
- **Unknown fields** of a body are rejected. Unknown query parameters are ignored.
- **Idempotency-Key** makes it safe to repeat a request: each key has one effect and returns the same response, byte for byte.
- **Errors** have one envelope, \`{"error": {"code", "message"}}\`. The codes are a closed list. The header \`Spool-Error-Reason\` names the cause.
- **Checks** are made in this order: token, rate limit, path and query, body, access, idempotency, operation. A resource that the caller cannot see returns the same error as one that does not exist.`;

const TAGS = {
  Agents: 'Published Agents that can be called.',
  Threads: 'Conversations: create, list, archive, delete.',
  Events: 'Messages, decisions and interrupts, and the public log.',
  Runs: 'Executions of the Agent.',
  Files: 'Drafts, attachments and artifacts.',
  Service: 'Descriptions of the service.',
};

function tagOf(path: string): keyof typeof TAGS {
  if (path.includes('/files')) return 'Files';
  if (path.includes('/events')) return 'Events';
  if (path.includes('/runs')) return 'Runs';
  return path.includes('/threads') ? 'Threads' : 'Agents';
}

function describePaths(): Json {
  const paths: Record<string, Json> = {};
  for (const [name, operation] of Object.entries<Operation>(operations)) {
    const item = (paths[operation.path] ??= {});
    item[operation.method.toLowerCase()] = describeOperation(name, operation);
    if (operation.answer === 'bytes') item['head'] = describeHead(name, operation);
  }
  paths['/openapi.json'] = {
    get: {
      operationId: 'getOpenApi',
      summary: 'Read this document',
      description: 'OpenAPI 3.1. Needs no token.',
      tags: ['Service'],
      security: [],
      responses: {
        200: { description: 'This document.', content: { 'application/json': { schema: { type: 'object' } } } },
        400: refusal('InvalidRequest'),
      },
    },
  };
  return paths;
}

function describeOperation(name: string, operation: Operation): Json {
  const { summary, description, body } = operation;
  return {
    operationId: name,
    summary,
    description,
    tags: [tagOf(operation.path)],
    parameters: parametersOf(operation),
    ...(body === null ? {} : { requestBody: { required: true, content: requestContent(name, body) } }),
    responses: { ...describeSuccess(operation, examplesOf(ANSWER_EXAMPLES, name)), ...refusalsOf(name, operation) },
  };
}

/** Describes HEAD for an operation that returns bytes (RFC 9110, section 9.3.2). */
function describeHead(name: string, operation: Operation): Json {
  const answers = { ...describeSuccess(operation, undefined, { withoutBytes: true }), ...refusalsOf(name, operation) };
  const { 206: _part, 416: _outside, ...responses } = answers as Record<number, Json>;
  return {
    operationId: `${name}Head`,
    summary: 'Read the headers of a download',
    description:
      'Returns status and headers of the same GET request, without the bytes. Ignores `Range`. Errors have no body either.',
    tags: [tagOf(operation.path)],
    parameters: parametersOf(operation),
    responses,
  };
}

type NamedExamples = Record<string, Example<unknown>>;

const examplesOf = (of: Record<string, NamedExamples>, name: string): NamedExamples | undefined => of[name];

function requestContent(name: string, body: Exclude<Operation['body'], null>): Json {
  if (body !== 'upload') return jsonContent(body, examplesOf(BODY_EXAMPLES, name));
  const file = {
    ...BYTES,
    description:
      'The file: the only part of the body, at most 64 MiB (otherwise 413). Its file name, without folders, becomes the name of the file.',
  };
  const schema = { type: 'object', properties: { file }, required: ['file'], additionalProperties: false };
  return { 'multipart/form-data': { schema } };
}

function parametersOf({ params, query, takesIdempotencyKey, takesIfMatch, answer }: Operation): Json[] {
  return [
    ...describeParameters(params, 'path'),
    ...describeParameters(query, 'query'),
    ...(answer === 'bytes' ? [] : [describeParameter('extended', 'query', extended)]),
    ...(takesIdempotencyKey ? [describeParameter('Idempotency-Key', 'header', idempotencyKey)] : []),
    ...(answer === 'event_stream' ? [LAST_EVENT_ID] : []),
    ...(takesIfMatch ? [IF_MATCH] : []),
    ...(answer === 'bytes' ? RANGES : []),
  ];
}

function describeParameters(schema: z.ZodObject, place: 'path' | 'query'): Json[] {
  return Object.entries(schema.shape).map(([name, field]) => describeParameter(name, place, field as z.ZodType));
}

function describeParameter(name: string, place: 'path' | 'query' | 'header', field: z.ZodType): Json {
  const { description, ...schema } = schemaOf(field);
  // Examples only for required parameters, because the page sends every example when an operation is tried.
  const example = place === 'path' ? { example: EXAMPLE_IDS[name as keyof typeof EXAMPLE_IDS] } : {};
  return { name, in: place, required: place === 'path', description, schema, ...example };
}

const LAST_EVENT_ID = describeParameter(
  'Last-Event-ID',
  'header',
  ulid.meta({
    description: 'Resumes after this event id; `limit` is ignored. An EventSource sends it when it reconnects.',
  }),
);

const inHeader = (name: string, description: string) => ({
  name,
  in: 'header',
  required: false,
  description,
  schema: { type: 'string' },
});

const IF_MATCH = inHeader(
  'If-Match',
  'One or more ETags. If the file has another ETag, the request is rejected (412).',
);

const RANGES = [
  inHeader(
    'Range',
    'One range of bytes, such as `bytes=0-1023` or `bytes=-500`. Several ranges, or an invalid one, return the whole file.',
  ),
  inHeader('If-Range', '`ETag` that the range applies to. If the file has another ETag, the whole file is sent.'),
  inHeader('If-None-Match', '`ETag` of the bytes that the caller has. If the file has the same ETag, returns 304.'),
];
