import { REASON_HEADER } from '../error-reasons.ts';
import { BYTES, describePaths, openAnswers, refTo, SchemaWriter, type Json } from '../openapi-document.ts';
import { ADMIN_ERROR_REASONS, ADMIN_ERRORS } from './errors.ts';
import type { AdminOperation } from './operation.ts';
import { adminOperations } from './operations.ts';
import { adminComponents } from './records.ts';

const schemas = new SchemaWriter(adminComponents, 'input');

/** Returns the OpenAPI 3.1 document of the admin API. A test keeps docs/admin/openapi.json equal to it. */
export function adminOpenApiDocument(serverUrl: string): Json {
  return openAnswers({
    openapi: '3.1.0',
    info: { title: 'Spool admin API', version: '1', description: INTRODUCTION },
    servers: [{ url: serverUrl }],
    security: [{ operatorToken: [] }],
    tags: Object.entries(TAGS).map(([name, description]) => ({ name, description })),
    paths: describePaths<Record<string, AdminOperation>>(adminOperations, tagOf, describeOperation),
    components: {
      securitySchemes: {
        operatorToken: { type: 'http', scheme: 'bearer', description: 'The token of an operator (`…_op_…`).' },
      },
      schemas: { ...schemas.describeComponents(), ErrorEnvelope: ERROR },
      responses: { Refusal: REFUSAL },
    },
  });
}

const INTRODUCTION = `Operates an installation of Spool over HTTP, like the command \`spool\`.

- **Ids** are ULIDs, accepted in upper or lower case and returned in upper case. **Times** are RFC 3339 in UTC with milliseconds.
- **Unknown fields** of a body are rejected. Unknown query parameters are ignored.
- **Lists** are newest first. \`nextCursor\` leads to the next page.
- **Lines** (\`application/x-ndjson\`) are sent as they are produced. Ignore empty lines. If the operation fails half-way, the last line is \`{"error": {"code", "message"}}\`.
- **Bytes** (\`application/octet-stream\`) are a file to save under its name.
- **Every change** writes an entry to the audit log: who, what, when.
- **Errors** have one envelope, \`{"error": {"code", "message"}}\`.`;

const ERROR = {
  type: 'object',
  description: 'The body of every response that is not 2xx.',
  properties: {
    error: {
      type: 'object',
      properties: { code: { type: 'string', enum: Object.keys(ADMIN_ERRORS) }, message: { type: 'string' } },
      required: ['code', 'message'],
    },
  },
  required: ['error'],
};

const REFUSAL = {
  description: Object.entries(ADMIN_ERRORS)
    .map(([code, { status, meaning }]) => `\`${code}\` (${status}): ${meaning}`)
    .join(' '),
  headers: {
    [REASON_HEADER]: {
      description:
        'The cause: a reason of the Agent Threads API, or ' +
        `${Object.keys(ADMIN_ERROR_REASONS)
          .map((reason) => `\`${reason}\``)
          .join(', ')}. Errors of the operation itself omit it; their message states the cause.`,
      schema: { type: 'string' },
    },
  },
  content: { 'application/json': { schema: { $ref: refTo('ErrorEnvelope') } } },
};

const TAGS = {
  Organizations: 'Organizations own Agents and have people as members.',
  People: 'People can have tokens and own Agents and Threads.',
  Tokens: 'Credentials of people, services and operators.',
  Agents: 'Agents, their versions, and who may use them.',
  Threads: 'Threads of all callers, their events and files.',
  Runs: 'Runs of all Threads, and the confirmations that they wait for.',
  Queue: 'The queue and the workers.',
  Installation: 'The state of the installation, its checks, and the audit log.',
};

/** The tags by the first segment of the path. */
const TAG_OF: Record<string, keyof typeof TAGS> = {
  organizations: 'Organizations',
  people: 'People',
  tokens: 'Tokens',
  agents: 'Agents',
  threads: 'Threads',
  files: 'Threads',
  runs: 'Runs',
  'bulk-actions': 'Runs',
  'filter-values': 'Runs',
  confirmations: 'Runs',
  queue: 'Queue',
};

const tagOf = (path: string): keyof typeof TAGS => TAG_OF[path.split('/')[1] ?? ''] ?? 'Installation';

function describeOperation({ summary, params, query, body, status, form, answer }: AdminOperation): Json {
  const content = body && { 'application/json': { schema: schemas.describe(body, 'input') } };
  const answers = { [ANSWER_TYPES[form]]: { schema: form === 'bytes' ? BYTES : schemas.describe(answer) } };
  return {
    parameters: [
      ...schemas.describeParameters(params.shape, 'path'),
      ...schemas.describeParameters(query.shape, 'query'),
    ],
    ...(content && { requestBody: { required: !body.safeParse(undefined).success, content } }),
    // Linters require 4XX; `default` covers the rest, 5xx.
    responses: { [status]: { description: summary, content: answers }, '4XX': REFUSED, default: REFUSED },
  };
}

const REFUSED = { $ref: '#/components/responses/Refusal' };

export const ANSWER_TYPES = {
  json: 'application/json',
  lines: 'application/x-ndjson',
  bytes: 'application/octet-stream',
} as const satisfies Record<AdminOperation['form'], string>;
