import { describeRefusals, describeSuccess, jsonContent, refusal, refusalsOf, schemas } from './openapi-answers.ts';
import { addCompatibilityFields } from './openapi-compatibility.ts';
import { ANSWER_EXAMPLES, BODY_EXAMPLES, EXAMPLE_IDS, type Example } from './openapi-examples.ts';
import { BYTES, describePaths, openAnswers, type Json } from './openapi-document.ts';
import type { Operation } from './operation.ts';
import { operations } from './operations.ts';
import { extended, idempotencyKey } from './requests.ts';
import { ulid } from './scalars.ts';

/**
 * Returns the OpenAPI 3.1 document of all operations, generated from the schemas that check requests. A test keeps
 * docs/api/openapi.json equal to it. `compatibility`: with the older fields (docs/api/compatibility.md).
 */
export function openApiDocument(serverUrl: string, { compatibility = false } = {}): Json {
  const paths = describePaths<Record<string, Operation>>(operations, tagOf, describeOperation);
  const download = paths[operations.readContent.path]!;
  download['head'] = describeHead(download['get'] as Json);
  const document = {
    openapi: '3.1.0',
    info: { title: 'Agent Threads API', version: '1', description: INTRODUCTION },
    servers: [{ url: serverUrl }],
    security: [{ token: [] }],
    tags: Object.entries(TAGS).map(([name, description]) => ({ name, description })),
    paths: { ...paths, '/openapi.json': OPENAPI },
    components: {
      securitySchemes: {
        token: {
          type: 'http',
          scheme: 'bearer',
          description:
            'The token of a person (`…_pat_…`), of a service (`…_svc_…`), or of one user’s browser (`…_bt_…`). Only browser ' +
            'tokens have scopes: their verbs.',
        },
      },
      schemas: schemas.describeComponents(),
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
  'Browser tokens': 'Tokens for the browsers of your users.',
  Service: 'Descriptions of the service.',
};

function tagOf(path: string): keyof typeof TAGS {
  if (path.includes('/files')) return 'Files';
  if (path.includes('/events')) return 'Events';
  if (path.includes('/runs')) return 'Runs';
  if (path.includes('/browser-tokens')) return 'Browser tokens';
  return path.includes('/threads') ? 'Threads' : 'Agents';
}

const OPENAPI = {
  get: {
    operationId: 'getOpenApi',
    summary: 'Read this document',
    description: 'OpenAPI 3.1. Needs no token.',
    tags: ['Service'],
    security: [],
    responses: {
      200: { description: 'This document.', content: jsonContent({ type: 'object' }) },
      400: refusal('InvalidRequest'),
    },
  },
};

function describeOperation(operation: Operation, name: string): Json {
  const { body } = operation;
  return {
    parameters: parametersOf(operation),
    ...(body === null ? {} : { requestBody: { required: true, content: requestContent(name, body) } }),
    responses: { ...describeSuccess(operation, examplesOf(ANSWER_EXAMPLES, name)), ...refusalsOf(name, operation) },
  };
}

/** Describes HEAD, given GET of an operation that returns bytes (RFC 9110, section 9.3.2). */
function describeHead(get: Json): Json {
  const { 206: _part, 416: _outside, ...responses } = get['responses'] as Record<string, Json>;
  const withoutBytes = Object.entries(responses).map(([status, { content: _, ...rest }]) => [status, rest]);
  return {
    ...get,
    operationId: `${String(get['operationId'])}Head`,
    summary: 'Read the headers of a download',
    description:
      'Returns status and headers of the same GET request, without the bytes. Ignores `Range`. Errors have no body either.',
    responses: Object.fromEntries(withoutBytes) as Json,
  };
}

type NamedExamples = Record<string, Example<unknown>>;

const examplesOf = (of: Record<string, NamedExamples>, name: string): NamedExamples | undefined => of[name];

function requestContent(name: string, body: Exclude<Operation['body'], null>): Json {
  if (body !== 'upload') return jsonContent(schemas.describe(body, 'input'), examplesOf(BODY_EXAMPLES, name));
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
    ...schemas.describeParameters(params.shape, 'path').map(withExample),
    ...schemas.describeParameters(query.shape, 'query'),
    ...(answer === 'bytes' ? [] : schemas.describeParameters({ extended }, 'query')),
    ...(takesIdempotencyKey ? schemas.describeParameters({ 'Idempotency-Key': idempotencyKey }, 'header') : []),
    ...(answer === 'event_stream' ? schemas.describeParameters(LAST_EVENT_ID, 'header') : []),
    ...(takesIfMatch ? [IF_MATCH] : []),
    ...(answer === 'bytes' ? RANGES : []),
  ];
}

/** Only for required parameters, because the page sends every example when an operation is tried. */
const withExample = (parameter: Json): Json => ({
  ...parameter,
  example: EXAMPLE_IDS[parameter['name'] as keyof typeof EXAMPLE_IDS],
});

const LAST_EVENT_ID = {
  'Last-Event-ID': ulid.meta({
    description: 'Resumes after this event id; `limit` is ignored. An EventSource sends it when it reconnects.',
  }),
};

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
