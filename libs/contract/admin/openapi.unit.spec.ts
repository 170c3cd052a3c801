import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { ADMIN_ERRORS, ANSWER_TYPES, adminOpenApiDocument, adminOperations, type AdminOperation } from './index.ts';

interface Schema {
  $ref?: string;
  description?: string;
  properties?: Record<string, Schema>;
  [keyword: string]: unknown;
}

interface Described {
  operationId: string;
  summary: string;
  description: string;
  tags: string[];
  parameters: { name: string; in: string; required: boolean; description?: string; schema: Schema }[];
  requestBody?: { content: Record<string, { schema: Schema }> };
  responses: Record<string, { $ref?: string; content?: Record<string, { schema?: Schema }> }>;
}

interface Document {
  openapi: string;
  tags: { name: string; description: string }[];
  paths: Record<string, Record<string, Described>>;
  components: { schemas: Record<string, Schema>; responses: Record<string, { description: string }> };
}

const document = adminOpenApiDocument('/admin/v1') as unknown as Document;
const described = Object.values(document.paths).flatMap((item) => Object.values(item));
const operations = Object.entries<AdminOperation>(adminOperations);

const ajv = new Ajv2020({ strict: false, formats: { ulid: true } });
addFormats.default(ajv);
ajv.addSchema({ $id: 'admin', components: document.components });

/** Every schema that stands for itself: components, parameters, bodies and answers. */
const schemas: [string, Schema][] = [
  ...Object.entries(document.components.schemas),
  ...described.flatMap(({ operationId, parameters, requestBody, responses }) => [
    ...parameters.map(({ name, schema }): [string, Schema] => [`${operationId} ${name}`, schema]),
    ...[requestBody, ...Object.values(responses)].flatMap((part) =>
      Object.values(part?.content ?? {}).flatMap(({ schema }): [string, Schema][] =>
        schema ? [[operationId, schema]] : [],
      ),
    ),
  ]),
];

it('equals docs/admin/openapi.json; otherwise run `npm run openapi`, read the diff and commit it', () => {
  const checkedIn = readFileSync(join(import.meta.dirname, '../../../docs/admin/openapi.json'), 'utf8');
  expect(JSON.stringify(JSON.parse(checkedIn), null, 2)).toBe(JSON.stringify(document, null, 2));
});

it('describes every operation where it is, with its parameters, its body, its answer and how it refuses', () => {
  expect(document.openapi).toBe('3.1.0');
  expect(described).toHaveLength(operations.length);
  for (const [name, { method, path, status, body, form }] of operations) {
    const of = document.paths[path]?.[method.toLowerCase()];
    expect([name, of?.operationId, Object.keys(of?.responses ?? {})]).toEqual([
      name,
      name,
      [String(status), '4XX', 'default'],
    ]);
    expect([name, of?.requestBody !== undefined]).toEqual([name, body !== null]);
    expect([name, Object.keys(of?.responses[status]?.content ?? {})]).toEqual([name, [ANSWER_TYPES[form]]]);
    const inPath = of?.parameters.filter((parameter) => parameter.in === 'path') ?? [];
    expect(inPath.map((parameter) => parameter.name)).toEqual([...path.matchAll(/\{(\w+)\}/g)].map(([, is]) => is));
    expect(inPath.every(({ required }) => required)).toBe(true);
  }
});

it('has no path that another one hides', () => {
  const shapes = operations.map(([, { method, path }]) => `${method} ${path.replaceAll(/\{\w+\}/g, '{}')}`);
  expect(new Set(shapes).size).toBe(shapes.length);
});

it('has valid schemas, and no reference that leads nowhere', () => {
  for (const [name, schema] of schemas) expect([name, ajv.validateSchema(schema)]).toEqual([name, true]);
  const refs = [...JSON.stringify(document).matchAll(/"\$ref":"#\/([^"]+)"/g)].map(([, way]) => way!.split('/'));
  expect(refs.length).toBeGreaterThan(80);
  for (const [, kind, name] of refs) {
    expect(document.components[kind as 'schemas' | 'responses']).toHaveProperty(name!);
  }
});

it('says of every parameter and every limit of a body what the schemas say', () => {
  for (const { operationId, parameters } of described) {
    const silent = parameters.filter(({ name, description = '' }) => !/\w/.test(description) && !name.endsWith('Id'));
    expect([operationId, silent.map(({ name }) => name)]).toEqual([operationId, []]);
  }
  const { schema } = document.paths['/organizations']!['post']!.requestBody!.content['application/json']!;
  expect(schema.properties?.['name']).toEqual({ type: 'string', minLength: 1, maxLength: 255 });
});

it('names every error code with its status', () => {
  const { description } = document.components.responses['Refusal']!;
  for (const [code, { status }] of Object.entries(ADMIN_ERRORS)) {
    expect(description).toContain(`\`${code}\` (${status})`);
  }
});

it('gives every operation a summary, a description and one tag, and uses every tag', () => {
  for (const { operationId, summary, description, tags } of described) {
    expect([operationId, summary, description]).toEqual([
      operationId,
      expect.stringMatching(/\w/),
      expect.stringMatching(/\w/),
    ]);
    expect([operationId, tags]).toEqual([operationId, [expect.any(String)]]);
  }
  const used = new Set(described.flatMap(({ tags }) => tags));
  expect([...used].toSorted()).toEqual(document.tags.map(({ name }) => name).toSorted());
});

it('leaves answers open to new fields and closes request bodies', () => {
  const text = (part: unknown): string => JSON.stringify(part) ?? '';
  const closed = '"additionalProperties":false';
  expect(text(document.components)).not.toContain(closed);
  for (const { operationId, requestBody, responses } of described) {
    expect([operationId, text(responses).includes(closed)]).toEqual([operationId, false]);
    if (requestBody) expect([operationId, text(requestBody).includes(closed)]).toEqual([operationId, true]);
  }
});

it('describes bytes in the form that client generators know', () => {
  const { content } = document.paths['/files/{fileId}/content']!['get']!.responses['200']!;
  const BYTES = { type: 'string', format: 'binary', contentMediaType: 'application/octet-stream' };
  expect(content).toEqual({ 'application/octet-stream': { schema: BYTES } });
});
