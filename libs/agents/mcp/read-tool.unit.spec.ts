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
  [{ name: 'bad', inputSchema: { type: ['object', 'null'] } }, wrongType],
  [{ name: 'bad', inputSchema: null }, wrongType],
  [{ name: 'bad' }, wrongType],
  [
    { name: 'bad', inputSchema: { ...object, required: true } },
    'The input schema of "bad" has a "required" that is not a list of names.',
  ],
  [
    { name: 'bad', ...withProperties({ x: 'text' }) },
    'The input schema of "bad" has a property "x" that is not a schema.',
  ],
  [{ name: 'bad', ...withProperties('x') }, 'The input schema of "bad" has "properties" that are not an object.'],
  [{ name: null, inputSchema: object }, 'Entry 3 of the list has no name.'],
  [{ name: '', inputSchema: object }, 'Entry 3 of the list has no name.'],
  [null, 'Entry 3 of the list has no name.'],
  ['text', 'Entry 3 of the list has no name.'],
])('says why %j is left out', (tool, why) => {
  expect(readTool(tool, 2)).toBe(why);
});

function withProperties(properties: unknown) {
  return { inputSchema: { ...object, properties } };
}

function required(...names: string[]) {
  return { inputSchema: { ...object, required: names } };
}
