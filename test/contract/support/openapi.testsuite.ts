import { Ajv2020 } from 'ajv/dist/2020.js';
import { routesOf } from './sweep.testsuite.ts';
import type { World } from './world.ts';

const ERROR_CLASSES = ['400', '401', '403', '404', '409', '429', '500', '503'];

/** The document itself (docs/spec/decisions.md#routes); that answers are as it says, every request of the suite shows. */
export function describeOpenApi(world: World): void {
  describe('GET /openapi.json', () => {
    test('200 without a token, OpenAPI 3.1, {base_url} ends in /api/v1', async () => {
      const { status, headers } = await world.client.get('/openapi.json', { token: null });
      expect([status, headers.get('content-type')]).toEqual([200, 'application/json; charset=utf-8']);
      const { document } = world.client;
      expect(document.openapi).toMatch(/^3\.1\./);
      for (const { url } of document.servers) expect(url).toMatch(/\/api\/v1$/);
      expect(world.client.baseUrl).toMatch(/\/api\/v1$/);
    });

    test('each operation documents its response classes, with the error envelope', () => {
      const text = JSON.stringify(world.client.document.components.responses);
      expect(text).toContain('#/components/schemas/ErrorEnvelope');
      for (const { method, template, operation } of routesOf(world)) {
        if (template === '/openapi.json') continue;
        const documented = Object.keys(operation.responses);
        expect([method, template, documented]).toEqual([method, template, expect.arrayContaining(ERROR_CLASSES)]);
        if (operation.requestBody !== undefined) {
          expect([template, documented]).toEqual([template, expect.arrayContaining(['413', '415'])]);
        }
      }
    });

    test('path parameters are ULIDs, and every operation needs the bearer token but this one', () => {
      for (const { template, operation } of routesOf(world)) {
        const names = [...template.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
        const inPath = (operation.parameters ?? []).filter((parameter) => parameter.in === 'path');
        expect(inPath.map(({ name }) => name).toSorted()).toEqual(names.toSorted());
        for (const { schema } of inPath) expect(schema).toMatchObject({ type: 'string', format: 'ulid' });
        expect(operation.security).toEqual(template === '/openapi.json' ? [] : undefined);
      }
    });

    test('Idempotency-Key is a parameter of exactly the operations that take it', () => {
      const takers = routesOf(world).filter(({ operation }) =>
        operation.parameters?.some(({ name, in: place }) => place === 'header' && name === 'Idempotency-Key'),
      );
      expect(takers.map(({ method, template }) => `${method} ${template}`).toSorted()).toEqual([
        'POST /agents/{agentId}/files',
        'POST /agents/{agentId}/threads',
        'POST /threads/{threadId}/events',
        'POST /threads/{threadId}/runs/{runId}/retry',
      ]);
    });

    test('request bodies refuse additional properties, and answers are open to new ones', () => {
      const { schemas } = world.client.document.components;
      for (const name of ['CreateThread', 'UserMessage', 'PermissionDecision', 'UserInterrupt', 'FileResource'])
        expect([name, schemas[name]?.['additionalProperties']]).toEqual([name, false]);
      for (const name of ['ThreadSummary', 'RunSummary', 'ThreadFile', 'UserMessageEntry', 'ErrorEnvelope'])
        expect([name, JSON.stringify(schemas[name])]).toEqual([
          name,
          expect.not.stringContaining('additionalProperties'),
        ]);
    });

    test('entries of the log are a union discriminated by type', () => {
      const { oneOf, discriminator } = world.client.document.components.schemas['ThreadEventLogEntry'] as {
        oneOf: { $ref: string }[];
        discriminator: { propertyName: string; mapping: Record<string, string> };
      };
      expect(discriminator.propertyName).toBe('type');
      expect(Object.values(discriminator.mapping)).toEqual(oneOf.map(({ $ref }) => $ref));
    });

    test('every schema is one, and no reference leads nowhere', () => {
      const ajv = new Ajv2020({ strict: false, formats: { ulid: true, 'date-time': true } });
      const { schemas } = world.client.document.components;
      for (const [name, schema] of Object.entries(schemas))
        expect([name, ajv.validateSchema(schema)]).toEqual([name, true]);
      const refs = [...JSON.stringify(world.client.document).matchAll(/"\$ref":"#\/components\/(\w+)\/([^"]+)"/g)];
      expect(refs.length).toBeGreaterThan(50);
      for (const [, kind, name] of refs) {
        expect(world.client.document.components[kind as 'schemas' | 'responses']).toHaveProperty([name!]);
      }
    });

    test('every operation has a summary and an operationId of its own', () => {
      const ids = routesOf(world).map(({ operation }) => operation.operationId);
      expect(new Set(ids).size).toBe(ids.length);
      for (const { operation } of routesOf(world)) expect(operation.summary).toMatch(/\w/);
    });
  });
}
