import { Ajv2020 } from 'ajv/dist/2020.js';
import { ERRORS, openApiDocument, operations } from './index.ts';

const document = openApiDocument('/api/v1') as unknown as {
  openapi: string;
  paths: Record<string, Record<string, Described>>;
  components: { schemas: Record<string, Schema>; responses: Record<string, { description: string }> };
};

interface Described {
  operationId: string;
  parameters?: { name: string; in: string; required: boolean; schema: Schema }[];
  requestBody?: { required: boolean };
  responses: Record<string, object>;
}

interface Schema {
  additionalProperties?: unknown;
  properties?: Record<string, Schema>;
  [keyword: string]: unknown;
}

it('describes every operation, and how it refuses', () => {
  expect(document.openapi).toBe('3.1.0');
  for (const [name, { method, path, status, body }] of Object.entries(operations)) {
    const described = document.paths[path]?.[method.toLowerCase()];
    expect(described?.operationId).toBe(name);
    const refusals = ['400', '401', '403', '404', '409', ...(body === null ? [] : ['413', '415']), '429', '500', '503'];
    expect(Object.keys(described?.responses ?? {})).toEqual([String(status), ...refusals]);
    expect(described?.requestBody !== undefined).toBe(body !== null);
    const inPath = described?.parameters
      ?.filter((parameter) => parameter.in === 'path')
      .map((parameter) => parameter.name);
    expect(inPath).toEqual([...path.matchAll(/\{(\w+)\}/g)].map(([, parameter]) => parameter));
  }
});

it('has no reference that leads nowhere', () => {
  const refs = [...JSON.stringify(document).matchAll(/"\$ref":"#\/components\/(\w+)\/(\w+)"/g)];
  expect(refs.length).toBeGreaterThan(50);
  for (const [, kind, name] of refs) {
    expect(document.components[kind as 'schemas' | 'responses']).toHaveProperty(String(name));
  }
});

it('has valid schemas without additional properties', () => {
  const ajv = new Ajv2020({ strict: false });
  for (const [name, schema] of Object.entries(document.components.schemas)) {
    expect([name, ajv.validateSchema(schema)]).toEqual([name, true]);
    expect([name, schema.additionalProperties]).toEqual([name, false]);
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
  const { CreateThread, UserMessage, SendEvents } = document.components.schemas;
  expect(CreateThread).toMatchObject({
    required: ['userId'],
    properties: { userId: { minLength: 1, maxLength: 255 } },
  });
  expect(UserMessage).toMatchObject({ required: ['type', 'text'], properties: { text: { maxLength: 128_000 } } });
  expect(SendEvents).toMatchObject({ properties: { events: { minItems: 1, maxItems: 100 } } });
});

it('explains every error code', () => {
  const texts = Object.values(document.components.responses).map(({ description }) => description);
  for (const code of Object.keys(ERRORS)) expect(texts.join('\n')).toContain(`\`${code}\``);
});
