import { Ajv2020 } from 'ajv/dist/2020.js';
import fc from 'fast-check';
import { operationsOf, type ApiDocument, type Parameter, type Schema } from './document.ts';
import { requestPlans } from './requests.ts';
import { Values } from './values.ts';

const schema: Schema = {
  type: 'object',
  properties: {
    name: { type: 'string', minLength: 1, maxLength: 3 },
    count: { type: 'integer', minimum: 1, maximum: 5 },
    note: { anyOf: [{ type: 'string', maxLength: 3 }, { type: 'null' }] },
    list: { type: 'array', minItems: 1, maxItems: 2, items: { anyOf: [{ const: 'a' }, { type: 'null' }] } },
  },
  required: ['name', 'list'],
  additionalProperties: false,
};

const thingId: Parameter = { name: 'thingId', in: 'path', required: true, schema: { type: 'string', format: 'ulid' } };

const document: ApiDocument = {
  security: [{ token: [] }],
  paths: {
    '/things/{thingId}': {
      post: {
        parameters: [thingId, { name: 'limit', in: 'query', schema: { type: 'integer', minimum: 1, maximum: 9 } }],
        requestBody: {
          required: true,
          content: { 'application/json': { schema: { $ref: '#/components/schemas/Thing' } } },
        },
        responses: { 200: {} },
      },
      get: { parameters: [thingId], responses: { 200: {} }, security: [] },
    },
  },
  components: { schemas: { Thing: schema } },
};

const fits = new Ajv2020({ strict: false }).compile(schema);
const values = new Values(document);
/** What stands for odd numbers, as it will be written. */
const written = (value: unknown): unknown =>
  JSON.parse(JSON.stringify(value).replace(/\{"\$raw":"([^{}"]*)"\}/g, (_, text: string) => text));

test('values made to be right are right by the schema, at its bounds too', () => {
  const seen = new Set<number>();
  fc.assert(
    fc.property(values.valid(schema, 'thing'), (value) => {
      seen.add([...(value as { name: string }).name].length);
      return fits(written(value));
    }),
    { numRuns: 500 },
  );
  expect([...seen].toSorted()).toEqual([1, 2, 3]);
});

test('values made to be wrong are wrong by the schema, or hold what it has no word for', () => {
  fc.assert(
    fc.property(values.wrong(schema, 'thing')!, ({ value }) => {
      const holds = /\\u0000|\\ud8|\\udc/i.test(JSON.stringify(value)) || JSON.stringify(value).includes('__proto__');
      return holds || !fits(written(value));
    }),
    { numRuns: 2_000 },
  );
});

test('a seed repeats its requests, and every operation comes, right and wrong', () => {
  const sample = () => fc.sample(requestPlans(document), { seed: 7, numRuns: 500 });
  const plans = sample();
  expect(JSON.stringify(sample())).toBe(JSON.stringify(plans));
  for (const { name } of operationsOf(document)) {
    const expected = plans.filter(({ operation }) => operation.name === name).map((plan) => plan.expected);
    expect(new Set(expected)).toEqual(new Set(['accepted', 'refused', 'anything']));
  }
});
