import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { EventSourceParserStream } from 'eventsource-parser/stream';
import fc from 'fast-check';
import type { z } from 'zod';
import { ERROR_REASONS, ERRORS, openApiDocument, operations, REASON_HEADER, type Operation } from './index.ts';

interface Document {
  openapi: string;
  tags: { name: string }[];
  paths: Record<string, Record<string, Described>>;
  components: { schemas: Record<string, Schema>; responses: Record<string, Response> };
}

interface Described {
  operationId: string;
  summary: string;
  description: string;
  tags: string[];
  parameters?: {
    name: string;
    in: string;
    required: boolean;
    description: string;
    schema: Schema;
    example?: unknown;
  }[];
  requestBody?: { required: boolean; content: Record<string, Content> };
  responses: Record<string, Response>;
}

interface Response {
  $ref?: string;
  description: string;
  headers?: Record<string, { description: string; required?: boolean; schema: Schema }>;
  content?: Record<string, Content>;
}

interface Content {
  schema: Schema;
  examples?: Record<string, { summary: string; value: unknown }>;
}

interface Schema {
  type?: unknown;
  additionalProperties?: unknown;
  properties?: Record<string, Schema>;
  description?: string;
  $ref?: string;
  [keyword: string]: unknown;
}

const ULID = '01ARZ3NDEKTSV4RRFFQ69G5FAV';
const document = openApiDocument('/api/v1') as unknown as Document;
const { schemas, responses } = document.components;

/** Every operation of the document but itself: [METHOD path, what it says]. */
const described = Object.entries(document.paths)
  .filter(([path]) => path !== '/openapi.json')
  .flatMap(([path, item]) =>
    Object.entries(item).map(([method, of]): [string, Described] => [`${method.toUpperCase()} ${path}`, of]),
  );

const ajv = new Ajv2020({
  strict: false,
  allErrors: true,
  formats: { ulid: /^[0-7][0-9A-HJKMNP-TV-Za-hjkmnp-tv-z]{25}$/ },
});
addFormats.default(ajv);
ajv.addSchema({ $id: 'api', components: document.components });

function problemsOf(schema: Schema, value: unknown): string | null {
  const { $ref } = schema;
  // Ajv caches compiled schemas by id or by object identity; a new `{ $ref }` would be compiled every time.
  const validate = $ref === undefined ? ajv.compile(schema) : ajv.getSchema(`api${$ref}`)!;
  return validate(value) ? null : ajv.errorsText(validate.errors);
}

const follow = (response: Response): Response =>
  response.$ref === undefined ? response : responses[response.$ref.split('/').at(-1)!]!;

/** Every object of a document, with the way to it. */
function* walk(value: unknown, path = ''): Generator<[string, Record<string, unknown>]> {
  if (typeof value !== 'object' || value === null) return;
  if (!Array.isArray(value)) yield [path, value as Record<string, unknown>];
  for (const [key, below] of Object.entries(value)) yield* walk(below, `${path}/${key}`);
}

it('equals docs/api/openapi.json; otherwise run `npm run openapi`, read the diff and commit it', () => {
  const checkedIn = readFileSync(join(import.meta.dirname, '../../docs/api/openapi.json'), 'utf8');
  expect(JSON.stringify(JSON.parse(checkedIn), null, 2)).toBe(JSON.stringify(document, null, 2));
});

it('describes every operation, and how it refuses', () => {
  expect(document.openapi).toBe('3.1.0');
  for (const [name, { method, path, status, body, answer, takesIfMatch }] of Object.entries<Operation>(operations)) {
    const of = document.paths[path]?.[method.toLowerCase()];
    expect(of?.operationId).toBe(name);
    const isDownload = answer === 'bytes';
    const others = isDownload ? [206, 304] : answer === 'event_stream' ? [204] : [];
    const statuses = [status, ...others, 400, 401, 403, 404, 409];
    if (isDownload) statuses.push(410);
    if (takesIfMatch) statuses.push(412);
    if (method !== 'GET') statuses.push(413, 415);
    if (isDownload) statuses.push(416);
    expect([name, Object.keys(of?.responses ?? {})]).toEqual([name, [...statuses, 429, 500, 503].map(String)]);
    expect(of?.requestBody !== undefined).toBe(body !== null);
    const inPath = of?.parameters?.filter((parameter) => parameter.in === 'path').map((parameter) => parameter.name);
    expect(inPath).toEqual([...path.matchAll(/\{(\w+)\}/g)].map(([, parameter]) => parameter));
  }
  expect(described).toHaveLength(Object.keys(operations).length + 1);
});

it('has the download also as HEAD, without bytes', () => {
  const { get, head } = document.paths['/files/{fileId}/content']!;
  expect(head?.parameters).toEqual(get?.parameters);
  // It ignores `Range`.
  const withoutRanges = Object.keys(get!.responses).filter((status) => !['206', '416'].includes(status));
  expect(Object.keys(head!.responses)).toEqual(withoutRanges);
  for (const status of ['200', '304']) {
    expect(head!.responses[status]?.content).toBeUndefined();
    expect(head!.responses[status]?.headers).toEqual(get!.responses[status]?.headers);
  }
});

it('explains every operation, parameter, field, header and status', () => {
  const tags = document.tags.map(({ name }) => name);
  const ids = new Set<string>();
  for (const [name, { operationId, summary, description, tags: own, parameters = [], responses: all }] of described) {
    ids.add(operationId);
    expect([name, summary, description]).toEqual([name, expect.stringMatching(/\w/), expect.stringMatching(/\w{3}/)]);
    expect([name, own.length, tags]).toEqual([name, 1, expect.arrayContaining(own)]);
    for (const parameter of parameters) {
      expect([name, parameter.name, parameter.description]).toEqual([
        name,
        parameter.name,
        expect.stringMatching(/\w/),
      ]);
      if (parameter.required) expect(problemsOf(parameter.schema, parameter.example)).toBeNull();
    }
    for (const [status, response] of Object.entries(all)) {
      const { description: meaning, headers = {} } = follow(response);
      expect([name, status, meaning]).toEqual([name, status, expect.stringMatching(/\w/)]);
      for (const header of Object.values(headers)) expect(header.description).toMatch(/\w/);
    }
  }
  expect(ids.size).toBe(described.length);
  for (const [path, schema] of walk(schemas)) {
    const fields = Object.entries((schema as Schema).properties ?? {}).filter(([, { $ref }]) => $ref === undefined);
    for (const [field, { description }] of fields) {
      expect([path, field, description]).toEqual([path, field, expect.stringMatching(/\w/)]);
    }
  }
  for (const { description } of Object.values(schemas)) expect(description).toMatch(/\w/);
});

it('names every reason of an error answer in the header that has it', () => {
  const named = new Set<string>();
  for (const [name, { responses: all }] of described) {
    for (const [status, response] of Object.entries(all).filter(([key]) => Number(key) >= 400)) {
      const { description = '', required } = follow(response).headers?.[REASON_HEADER] ?? {};
      expect([name, status, required]).toEqual([name, status, true]);
      const reasons = [...description.matchAll(/`(\w+)`/g)].map(([, reason]) => reason as keyof typeof ERROR_REASONS);
      for (const reason of reasons) expect([reason, String(ERROR_REASONS[reason].status)]).toEqual([reason, status]);
      expect(reasons.length).toBeGreaterThan(0);
      reasons.forEach((reason) => named.add(reason));
    }
  }
  // These refuse what reaches no operation.
  const unrouted = ['method_not_allowed', 'request_timeout', 'unsupported_expectation', 'headers_too_large'];
  expect([...named, ...unrouted].toSorted()).toEqual(Object.keys(ERROR_REASONS).toSorted());
});

it('has no reference that leads nowhere', () => {
  const refs = [...JSON.stringify(document).matchAll(/"#\/components\/(\w+)\/(\w+)"/g)];
  expect(refs.length).toBeGreaterThan(200);
  for (const [, kind, name] of refs) {
    expect(document.components[kind as 'schemas' | 'responses']).toHaveProperty(String(name));
  }
});

it('has valid schemas, closed in request bodies and open to new fields in answers', () => {
  const bodies = described.map(([name, { requestBody }]) => [name, requestBody?.content] as const);
  const refs = JSON.stringify(bodies).matchAll(/components\/schemas\/(\w+)/g);
  const requests = new Set([...refs].map(([, name]) => name!));
  for (const id of requests)
    for (const [, name] of JSON.stringify(schemas[id]).matchAll(/components\/schemas\/(\w+)/g)) requests.add(name!);
  expect([...requests].toSorted()).toEqual([
    ...['AttachDraft', 'AttachFile', 'AttachInline', 'CreateBrowserToken', 'CreateThread', 'FileResource'],
    ...['PermissionDecision', 'SendEvents', 'UpdateThread', 'UserInterrupt', 'UserMessage'],
  ]);
  for (const [name, schema] of [...Object.entries(schemas), ...bodies]) {
    if (schema) expect([name, ajv.validateSchema(schema)]).toEqual([name, true]);
    const isRequest = requests.has(name) || name.includes('/');
    const objects = [...walk(schema)].filter(([, { type }]) => type === 'object');
    const wrong = objects.filter(([, { additionalProperties }]) => (additionalProperties === false) !== isRequest);
    expect([name, wrong.map(([path]) => path)]).toEqual([name, []]);
  }
  // A union is as closed as what it is made of.
  expect(schemas['AttachFile']?.['anyOf']).toEqual([
    { $ref: '#/components/schemas/AttachDraft' },
    { $ref: '#/components/schemas/AttachInline' },
  ]);
});

describe('examples', () => {
  const contents = described.flatMap(([name, { requestBody, responses: all }]) => [
    ...Object.entries(requestBody?.content ?? {}).map(([type, content]) => [`${name} body`, type, content] as const),
    ...Object.entries(all).flatMap(([status, response]) =>
      Object.entries(follow(response).content ?? {}).map(
        ([type, content]) => [`${name} ${status}`, type, content] as const,
      ),
    ),
  ]);

  it('are there for every JSON body and answer, and are right', () => {
    const ofJson = contents.filter(([, type]) => type === 'application/json');
    expect(ofJson.length).toBeGreaterThan(150);
    for (const [name, , { schema, examples = {} }] of ofJson) {
      expect([name, Object.keys(examples)]).not.toEqual([name, []]);
      for (const [key, { summary, value }] of Object.entries(examples)) {
        expect(summary).toMatch(/\w/);
        expect([name, key, problemsOf(schema, value)]).toEqual([name, key, null]);
      }
    }
  });

  it('are accepted as they stand', () => {
    for (const [name, { path, method, body }] of Object.entries<Operation>(operations)) {
      if (body === null || body === 'upload') continue;
      const content = document.paths[path]?.[method.toLowerCase()]?.requestBody?.content['application/json'];
      for (const { value } of Object.values(content?.examples ?? {})) {
        expect([name, body.safeParse(value).error]).toEqual([name, undefined]);
      }
    }
  });

  it('show every error code with its status', () => {
    const codes = new Map<string, Set<number>>();
    for (const [, { responses: all }] of described) {
      for (const [status, response] of Object.entries(all).filter(([key]) => Number(key) >= 400)) {
        const examples = follow(response).content?.['application/json']?.examples ?? {};
        for (const { value } of Object.values(examples)) {
          const { code } = (value as { error: { code: string } }).error;
          codes.set(code, (codes.get(code) ?? new Set()).add(Number(status)));
        }
      }
    }
    expect([...codes.keys()].toSorted()).toEqual(Object.keys(ERRORS).toSorted());
    const others: Record<string, number[]> = {
      not_found: [410],
      idempotency_conflict: [412],
      invalid_request: [413, 415, 416],
      internal_error: [503],
    };
    for (const [code, { status }] of Object.entries(ERRORS)) {
      expect([code, [...codes.get(code)!].toSorted()]).toEqual([code, [status, ...(others[code] ?? [])]]);
    }
  });

  it('of the stream are frames as they are sent', async () => {
    const { description, content } = document.paths['/threads/{threadId}/events/stream']!['get']!.responses['200']!;
    expect(content).toEqual({ 'text/event-stream': { schema: { $ref: '#/components/schemas/ThreadEventLogEntry' } } });
    const frames = new Blob([/```text\n([^]*)```/.exec(description)![1]!])
      .stream()
      .pipeThrough(new TextDecoderStream())
      .pipeThrough(new EventSourceParserStream());
    const names: unknown[] = [];
    for await (const { event, id, data } of frames) {
      names.push(event);
      if (event !== 'thread.event') continue;
      expect(problemsOf({ $ref: '#/components/schemas/ThreadEventLogEntry' }, JSON.parse(data))).toBeNull();
      expect(JSON.parse(data)).toMatchObject({ id });
    }
    expect(names).toEqual(['thread.event', 'thread.event', 'thread.event', 'thread.idle']);
  });
});

it('names the headers of every answer', () => {
  const rates = ['RateLimit-Limit', 'RateLimit-Remaining', 'RateLimit-Reset'];
  const more: Record<string, string[]> = {
    401: ['WWW-Authenticate'],
    416: ['Content-Range', 'ETag'],
    429: ['Retry-After'],
    503: ['Retry-After'],
    206: ['Content-Range', 'Content-Disposition', 'ETag', 'Accept-Ranges'],
    304: ['ETag'],
  };
  for (const [name, { responses: all, parameters = [] }] of described) {
    for (const [status, response] of Object.entries(all)) {
      const expected = [...rates, ...(Number(status) >= 400 ? ['X-Request-Id'] : []), ...(more[status] ?? [])];
      expect([name, status, Object.keys(follow(response).headers ?? {})]).toEqual([
        name,
        status,
        expect.arrayContaining(expected),
      ]);
    }
    const takesKey = parameters.some((parameter) => parameter.name === 'Idempotency-Key');
    const success = Object.keys(all)[0]!;
    expect([name, 'Idempotency-Replayed' in (all[success]!.headers ?? {})]).toEqual([name, takesKey]);
  }
});

it('says what is required of requests, and its limits', () => {
  const parameter = document.paths['/threads/{threadId}/events']?.['get']?.parameters?.find(
    ({ name }) => name === 'limit',
  );
  expect(parameter).toMatchObject({
    required: false,
    schema: { type: 'integer', minimum: 1, maximum: 1000, default: 100 },
  });
  const { CreateThread, UserMessage, SendEvents } = schemas;
  expect(CreateThread).toMatchObject({
    required: ['userId'],
    properties: { userId: { minLength: 1, maxLength: 255 } },
  });
  expect(UserMessage).toMatchObject({ required: ['type', 'text'], properties: { text: { maxLength: 128_000 } } });
  expect(SendEvents).toMatchObject({ properties: { events: { minItems: 1, maxItems: 100 } } });
});

describe('schemas and checks agree on', () => {
  const agree = (operation: { body: z.ZodType; path: string }, value: unknown): boolean => {
    const { content } = document.paths[operation.path]!['post']!.requestBody!;
    const isAccepted = operation.body.safeParse(value).success;
    expect([value, problemsOf(content['application/json']!.schema, value) === null]).toEqual([value, isAccepted]);
    return isAccepted;
  };
  const { createThread, sendEvents, attachFile } = operations;
  const id = ULID;
  const message = (fields: object) => ({ events: [{ type: 'user_message', text: 'a', ...fields }] });
  const inline = (contentBase64: string) => ({ name: 'a', contentType: 'a', contentBase64 });

  it.each([0, 1, 254, 255, 256])('%d characters of any size', (count) => {
    for (const character of ['a', 'é', '😀']) {
      const accepted = agree(createThread, { userId: character.repeat(count) });
      expect(accepted).toBe(count > 0 && count < 256);
      agree(sendEvents, message({ requestId: character.repeat(count) }));
    }
  });

  it.each([
    ['either case', id.toLowerCase(), true],
    ['too large', `8${id.slice(1)}`, false],
    ['a letter that is none', `${id.slice(1)}U`, false],
    ['too long', `${id}0`, false],
    ['null', null, false],
  ])('ids: %s', (_, file_id, isRight) => {
    expect(agree(createThread, { userId: 'u', resources: [{ type: 'file', file_id }] })).toBe(isRight);
    expect(agree(attachFile, { fileId: file_id })).toBe(isRight);
    agree(sendEvents, { events: [{ type: 'user_interrupt', runId: file_id }] });
  });

  it.each([0, 1, 100, 101])('%d items', (count) => {
    const events = Array.from({ length: count }, () => ({ type: 'user_interrupt' }));
    expect(agree(sendEvents, { events })).toBe(count > 0 && count < 101);
    const resources = Array.from({ length: count }, () => ({ type: 'file', file_id: id }));
    expect(agree(sendEvents, message({ resources }))).toBe(count < 101);
  });

  it('shapes', () => {
    for (const extra of [{ extra: 1 }, { type: 'other' }, { text: 1 }, { requestId: 1 }, { resources: {} }]) {
      expect(agree(sendEvents, message(extra))).toBe(false);
    }
    expect(agree(attachFile, { fileId: id, name: 'a' })).toBe(false);
    expect(agree(attachFile, inline(''))).toBe(true);
    expect(agree(attachFile, {})).toBe(false);
  });

  it('base64', () => {
    const pieces = fc.constantFrom('A', 'z', '9', '+', '/', '=', '==', 'AAA', 'AAAA', '-', '\n', 'é');
    const nearly = fc.array(pieces, { maxLength: 6 }).map((parts) => parts.join(''));
    const accepted = fc.sample(nearly, { numRuns: 2_000, seed: 7 }).filter((text) => agree(attachFile, inline(text)));
    expect(accepted.length).toBeGreaterThan(100);
    expect(accepted.length).toBeLessThan(1_900);
  });
});

it('describes bytes in the form that client generators know', () => {
  const BYTES = { type: 'string', format: 'binary', contentMediaType: 'application/octet-stream' };
  const upload = document.paths['/agents/{agentId}/files']!['post']!.requestBody!.content['multipart/form-data']!;
  expect(upload.schema.properties?.['file']).toMatchObject(BYTES);
  const { responses: answers } = document.paths['/files/{fileId}/content']!['get']!;
  for (const status of ['200', '206'])
    expect(answers[status]!.content).toEqual({ 'application/octet-stream': { schema: BYTES } });
});
