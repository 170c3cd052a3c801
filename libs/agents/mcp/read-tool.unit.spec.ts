import { readTool } from './read-tool.ts';

const object = { type: 'object' };

it.each<[string, object, object]>([
  ['"required": null', { inputSchema: { ...object, required: null } }, {}],
  ['nulls among the required names', { inputSchema: { ...object, required: ['a', null] } }, required('a')],
  ['null for each optional field', { title: null, description: null, annotations: null, _meta: null, icons: null }, {}],
  ['an output schema that is none', { outputSchema: { anyOf: [] } }, {}],
  ['an output schema that is a text', { outputSchema: 'text' }, {}],
  ['an output schema that cannot be compiled', { outputSchema: { ...object, $ref: '#/nowhere' } }, {}],
  ['unknown fields', { execution: 5, color: 'red' }, {}],
  ['optional fields of wrong types', { title: 5, description: ['a'], annotations: 'b' }, {}],
  [
    'hints that are null or texts',
    { annotations: { title: null, readOnlyHint: 'true', idempotentHint: true, destructiveHint: null } },
    { annotations: { idempotentHint: true } },
  ],
  ['"properties": null', { inputSchema: { ...object, properties: null } }, {}],
  ['an empty list of properties, as PHP writes an empty map', withProperties([]), withProperties({})],
  ['a property that is null', withProperties({ a: {}, b: null }), withProperties({ a: {} })],
  ['true and false as schemas', withProperties({ a: true, b: false }), withProperties({ a: {}, b: { not: {} } })],
  ['no schema', { inputSchema: undefined }, {}],
  ['null as its schema', { inputSchema: null }, {}],
  ['an empty schema', { inputSchema: {} }, {}],
  ['an empty list as its schema, as PHP writes an empty map', { inputSchema: [] }, {}],
  ['properties without a type', { inputSchema: { properties: { a: {} } } }, withProperties({ a: {} })],
  ['a type that may be null', { inputSchema: { type: ['object', 'null'] } }, {}],
  ['"required": true, as in draft 3', { inputSchema: { ...object, required: true } }, {}],
  [
    'what says nothing deep in a schema',
    withProperties({
      draft3: { type: 'string', required: true },
      php: { type: 'object', properties: [] },
      list: { type: 'array', items: [] },
      choice: { enum: [], anyOf: [{ enum: null }, { ...object, properties: { a: true } }] },
    }),
    withProperties({
      draft3: { type: 'string' },
      php: { type: 'object', properties: {} },
      list: { type: 'array', items: {} },
      choice: { anyOf: [{}, { ...object, properties: { a: {} } }] },
    }),
  ],
  [
    'all that a schema may have',
    ...same(
      withProperties({
        type: { type: ['string', 'null'], enum: ['a'] },
        required: { items: [{ type: 'integer' }, { type: 'number' }], additionalItems: false },
        list: { type: 'array', items: true },
        map: {
          ...object,
          additionalProperties: { type: 'boolean' },
          required: ['a'],
          patternProperties: { x: object },
        },
        values: {
          const: { type: 'any' },
          default: { required: 5 },
          enum: [{ type: 'any' }],
          'x-more': { type: 'any' },
        },
      }),
    ),
  ],
  [
    'nulls deep in a schema, but not where null is a value',
    withProperties({
      default: { type: 'string', description: null, default: null, enum: ['a', null] },
      list: { items: { anyOf: [null, { type: 'object', properties: { const: null }, required: null }] } },
      constant: { const: null, examples: [null] },
    }),
    withProperties({
      default: { type: 'string', default: null, enum: ['a', null] },
      list: { items: { anyOf: [{ type: 'object', properties: {} }] } },
      constant: { const: null, examples: [null] },
    }),
  ],
])('reads a tool with %s', (_what, more, is) => {
  expect(readTool({ name: 'a', inputSchema: object, ...more }, 0)).toEqual({ name: 'a', inputSchema: object, ...is });
});

const wrongType = 'The input schema of "bad" does not have the type "object".';

it.each<[object | null | string, string]>([
  [{ name: 'bad', inputSchema: { anyOf: [{ type: 'object', properties: {} }] } }, wrongType],
  [{ name: 'bad', inputSchema: { type: ['object', 'string'] } }, wrongType],
  [{ name: 'bad', inputSchema: { type: 'null' } }, wrongType],
  [{ name: 'bad', inputSchema: 'text' }, wrongType],
  ...([
    [{ required: 'a' }, 'has a "required" that is not a list of names'],
    [{ required: [5] }, 'has a "required" that is not a list of names'],
    [{ properties: 'x' }, 'has "properties" that are not an object'],
    [{ properties: { x: 'text' } }, 'has a property "x" that is not a schema'],
    [{ type: 'any' }, 'has an unknown type'],
    [{ type: ['string', 5] }, 'has an unknown type'],
    [{ type: [] }, 'has an unknown type'],
    [{ enum: 'a' }, 'has an "enum" that is not a list of values'],
    [{ items: 'string' }, 'has "items" that are not a schema'],
    [{ items: ['string'] }, 'has "items" that are not a schema'],
  ].flatMap(([part, what]) =>
    [
      [{ properties: { a: part } }, 'properties.a'],
      [{ properties: { a: { items: part } } }, 'properties.a.items'],
      [{ anyOf: [{}, part] }, 'anyOf'],
      [{ $defs: { a: { additionalProperties: part } } }, '$defs.a.additionalProperties'],
    ].map(([schema, where]) => [
      { name: 'bad', inputSchema: { ...object, ...(schema as object) } },
      `The input schema of "bad" ${what as string}, in "${where as string}".`,
    ]),
  ) as [object, string][]),
  [
    { name: 'bad', inputSchema: { ...object, required: 'a' } },
    'The input schema of "bad" has a "required" that is not a list of names.',
  ],
  [
    { name: 'bad', ...withProperties({ x: 'text' }) },
    'The input schema of "bad" has a property "x" that is not a schema.',
  ],
  [{ name: 'bad', ...withProperties('x') }, 'The input schema of "bad" has "properties" that are not an object.'],
  [{ name: 'x'.repeat(256), inputSchema: object }, `The name "${'x'.repeat(100)}" has more than 255 characters.`],
  [{ name: null, inputSchema: object }, 'Entry 3 of the list has no name.'],
  [{ name: '', inputSchema: object }, 'Entry 3 of the list has no name.'],
  [null, 'Entry 3 of the list has no name.'],
  ['text', 'Entry 3 of the list has no name.'],
])('says why %j is left out', (tool, why) => {
  expect(readTool(tool, 2)).toBe(why);
});

/** The same, as it is given and as it is read. */
function same(schema: object): [object, object] {
  return [schema, schema];
}

function withProperties(properties: unknown) {
  return { inputSchema: { ...object, properties } };
}

function required(...names: string[]) {
  return { inputSchema: { ...object, required: names } };
}
