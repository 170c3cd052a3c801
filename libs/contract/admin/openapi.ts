import { z } from 'zod';
import { REASON_HEADER } from '../error-reasons.ts';
import { BYTES, openAnswers, tidy, type Json } from '../openapi-schemas.ts';
import { ADMIN_ERROR_REASONS, ADMIN_ERRORS } from './errors.ts';
import type { AdminOperation } from './operation.ts';
import { adminOperations } from './operations.ts';
import { adminComponents } from './records.ts';

/**
 * The OpenAPI 3.1 document of the admin API, made from the schemas that requests are checked with. docs/admin/openapi.json is
 * it, kept equal by a test.
 */
export function adminOpenApiDocument(serverUrl: string): Json {
  return openAnswers({
    openapi: '3.1.0',
    info: { title: 'Spool admin API', version: '1', description: INTRODUCTION },
    servers: [{ url: serverUrl }],
    security: [{ operatorToken: [] }],
    tags: Object.entries(TAGS).map(([name, description]) => ({ name, description })),
    paths: describePaths(),
    components: {
      securitySchemes: {
        operatorToken: { type: 'http', scheme: 'bearer', description: 'The token of an operator (`…_op_…`).' },
      },
      schemas: { ...describeComponents(), ErrorEnvelope: ERROR },
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
  content: { 'application/json': { schema: { $ref: '#/components/schemas/ErrorEnvelope' } } },
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
  confirmations: 'Runs',
  queue: 'Queue',
};

const tagOf = (path: string): keyof typeof TAGS => TAG_OF[path.split('/')[1] ?? ''] ?? 'Installation';

function describePaths(): Json {
  const paths: Record<string, Json> = {};
  for (const [name, operation] of Object.entries<AdminOperation>(adminOperations)) {
    (paths[operation.path] ??= {})[operation.method.toLowerCase()] = describeOperation(name, operation);
  }
  return paths;
}

function describeOperation(name: string, { summary, description, params, query, body, ...rest }: AdminOperation): Json {
  return {
    operationId: name,
    summary,
    description,
    tags: [tagOf(rest.path)],
    parameters: [...describeParameters(params, 'path'), ...describeParameters(query, 'query')],
    ...(body === null
      ? {}
      : {
          requestBody: {
            required: !body.safeParse(undefined).success,
            content: { 'application/json': { schema: schemaOf(body, 'input') } },
          },
        }),
    responses: {
      [rest.status]: { description: summary, content: describeAnswer(rest) },
      // Linters require 4XX; `default` covers the rest, 5xx.
      '4XX': { $ref: '#/components/responses/Refusal' },
      default: { $ref: '#/components/responses/Refusal' },
    },
  };
}

function describeAnswer({ form, answer }: Pick<AdminOperation, 'form' | 'answer'>): Json {
  return { [ANSWER_TYPES[form]]: { schema: form === 'bytes' ? BYTES : schemaOf(answer, 'output') } };
}

export const ANSWER_TYPES = {
  json: 'application/json',
  lines: 'application/x-ndjson',
  bytes: 'application/octet-stream',
} as const satisfies Record<AdminOperation['form'], string>;

function describeParameters(schema: z.ZodObject, place: 'path' | 'query'): Json[] {
  return Object.entries(schema.shape).map(([name, field]) => {
    const { description, ...json } = schemaOf(field as z.ZodType, 'input');
    return { name, in: place, required: place === 'path', ...(description ? { description } : {}), schema: json };
  });
}

const uri = (id: string): string => `#/components/schemas/${id}`;

/** As JSON Schema, with what has a name by reference to it. */
function schemaOf(schema: z.ZodType, io: 'input' | 'output'): Json {
  const override = (made: Made): void => {
    const id = adminComponents.get(made.zodSchema as z.ZodType)?.id;
    if (id === undefined) return tidy(made);
    // Defined once, in the components.
    for (const keyword of Object.keys(made.jsonSchema)) delete made.jsonSchema[keyword];
    made.jsonSchema.$ref = uri(id);
  };
  const { $schema: _, ...json } = z.toJSONSchema(schema, { io, unrepresentable: 'any', override });
  return json;
}

interface Made {
  zodSchema: z.core.$ZodType;
  jsonSchema: z.core.JSONSchema.BaseSchema;
}

function describeComponents(): Json {
  const { schemas } = z.toJSONSchema(adminComponents, { uri, override: tidy });
  return Object.fromEntries(Object.entries(schemas).map(([id, { $schema: _, $id: __, ...schema }]) => [id, schema]));
}
