import { newRoom, toInputSchema, toOpenApiSchema } from './tool-schemas.ts';

type Schema = Record<string, unknown>;

const text = { type: 'string' };
const number = { type: 'number' };

it.each<[what: string, given: Schema, taken: Schema]>([
  ['no properties', { type: 'object' }, { type: 'object', properties: {} }],
  ['properties that are null', { type: 'object', properties: null }, { type: 'object', properties: {} }],
  ['no type', { properties: { a: text } }, { type: 'object', properties: { a: text } }],
  ['a list of types', { type: ['object', 'null'] }, { type: 'object', properties: {} }],
  [
    'a choice',
    { type: 'object', properties: { a: text }, anyOf: [{ required: ['a'] }, { properties: { b: number } }] },
    { type: 'object', properties: { a: text, b: number } },
  ],
  [
    'variants of one property',
    { type: 'object', oneOf: ['x', 'y', 'x'].map((kind) => ({ properties: { kind: { const: kind } } })) },
    { type: 'object', properties: { kind: { anyOf: [{ const: 'x' }, { const: 'y' }] } } },
  ],
  [
    'a reference',
    { type: 'object', $ref: '#/$defs/a~1b', $defs: { 'a/b': { properties: { a: text } } } },
    { type: 'object', properties: { a: text }, $defs: { 'a/b': { properties: { a: text } } } },
  ],
  ['a reference to nothing', { type: 'object', allOf: [{ $ref: '#/x' }, 5] }, { type: 'object', properties: {} }],
  [
    'objects within it',
    { type: 'object', properties: { a: { type: 'object' } } },
    { type: 'object', properties: { a: { type: 'object' } } },
  ],
])('rewrites a schema with %s to one that every server accepts', (_, given, taken) => {
  expect(toInputSchema(given)).toEqual(taken);
});

const property = (schema: Schema): Schema => ({ type: 'object', properties: { a: schema } });

it.each<[what: string, given: Schema, lowered: Schema]>([
  [
    'keywords that it refuses',
    { ...number, exclusiveMinimum: 0, multipleOf: 2, title: 'A', minimum: 1 },
    { ...number, minimum: 1 },
  ],
  ['additional properties', { ...property(text), additionalProperties: false }, property(text)],
  ['names of properties like keywords', property({ ...property(text), $schema: 'x' }), property(property(text))],
  ['null in a list of types', { type: ['string', 'null'] }, { ...text, nullable: true }],
  [
    'null in a choice',
    { anyOf: [number, { type: 'null' }], description: 'A' },
    { ...number, description: 'A', nullable: true },
  ],
  ['several types', { type: ['string', 'number'] }, { anyOf: [text, number] }],
  ['oneOf', { oneOf: [text, number], description: 'A' }, { anyOf: [text, number], description: 'A' }],
  ['allOf', { allOf: [property(text), { required: ['a'] }] }, { ...property(text), required: ['a'] }],
  ['a choice of what goes together', { ...property(text), anyOf: [{ required: ['a'] }] }, property(text)],
  ['a constant', { const: 'x' }, { ...text, enum: ['x'] }],
  ['numbers to choose from', { ...number, enum: [1, 2] }, { ...number, description: 'One of 1, 2.' }],
  ['formats', { ...text, format: 'uri' }, text],
  ['a format that it knows', { ...text, format: 'date-time' }, { ...text, format: 'date-time' }],
  ['lists without items', { type: 'array' }, { type: 'array', items: text }],
  ['tuples', { type: 'array', prefixItems: [number, text] }, { type: 'array', items: number }],
  ['what is required and unknown', { ...property(text), required: ['a', 'b'] }, { ...property(text), required: ['a'] }],
  ['objects without properties', { type: 'object', additionalProperties: text }, { type: 'object' }],
  ['anything', {}, text],
])('lowers %s to what Gemini accepts', (_, given, lowered) => {
  expect(toOpenApiSchema(property(given))).toEqual(property(lowered));
});

it('resolves references, and stops at recursive ones', () => {
  const $defs = { node: { type: 'object', properties: { next: { $ref: '#/$defs/node' }, at: text } } };
  expect(toOpenApiSchema({ type: 'object', properties: { a: { $ref: '#/$defs/node' } }, $defs })).toEqual(
    property({ type: 'object', properties: { next: { type: 'object' }, at: text } }),
  );
});

it('lowers multiplying and deep references to a small schema', () => {
  const many = Object.fromEntries(
    Array.from({ length: 40 }, (_, i) => [`d${i}`, { anyOf: Array(3).fill({ $ref: `#/$defs/d${i + 1}` }) }]),
  );
  const lowered = toOpenApiSchema({ ...property({ $ref: '#/$defs/d0' }), $defs: many });
  expect(JSON.stringify(lowered).length).toBeLessThan(1_000_000);
  const self = { type: 'object', properties: { a: text }, allOf: [{ $ref: '#' }] };
  expect(toOpenApiSchema(property(self))).not.toBeNull();
});

it.each<[what: string, schema: Schema]>([
  [
    'alternating references of choices',
    {
      $defs: { a: property({ description: 'a'.repeat(20_000) }), b: property({ description: 'b'.repeat(20_000) }) },
      anyOf: Array.from({ length: 300 }, (_, i) => ({ $ref: `#/$defs/${i % 2 === 0 ? 'a' : 'b'}` })),
    },
  ],
  [
    'many references to a long text',
    {
      $defs: { long: { type: 'string', description: 'x'.repeat(30_000) } },
      properties: Object.fromEntries(Array.from({ length: 900 }, (_, i) => [`p${i}`, { $ref: '#/$defs/long' }])),
    },
  ],
  [
    'references to a schema of many keywords',
    {
      $defs: { wide: Object.fromEntries(Array.from({ length: 3_000 }, (_, i) => [`k${i}`, 0])) },
      ...property({ allOf: Array(1_500).fill({ $ref: '#/$defs/wide' }) }),
    },
  ],
  [
    'a long list of types behind many references',
    {
      $defs: { long: { type: ['null', ...Array<string>(8_000).fill('string')] } },
      properties: Object.fromEntries(Array.from({ length: 2_400 }, (_, i) => [`p${i}`, { $ref: '#/$defs/long' }])),
    },
  ],
])('reads of %s no more than there is room for', (_what, schema) => {
  const room = newRoom();
  const whole = { type: 'object', ...schema };
  const [read, lowered] = [toInputSchema(whole, room), toOpenApiSchema(whole, room)];
  expect(JSON.stringify([read, lowered]).length).toBeLessThan(5_000_000);
  // All the room was used, except what the next part would have taken.
  expect(room.left).toBeLessThan(2 * JSON.stringify(whole).length);
});

it('reads 1,000 schemas without references whole, in one room', () => {
  const room = newRoom();
  const fields = Array.from({ length: 20 }, (_, i) => [`p${i}`, { type: 'string', description: 'x'.repeat(64) }]);
  const schema = { type: 'object', properties: Object.fromEntries(fields) as Schema, required: ['p0'] };
  for (let i = 0; i < 1_000; i++) expect(toOpenApiSchema(schema, room)).toEqual(schema);
  expect(room.left).toBeGreaterThanOrEqual(newRoom().left);
});

it('leaves out properties that exceed the room, and their names from those that are required', () => {
  const long = { $ref: '#/$defs/long' };
  const $defs = { long: { type: 'string', description: 'x'.repeat(4_000_000) } };
  const schema = { type: 'object', properties: { a: text, b: long, c: long }, required: ['a', 'c'], $defs };
  const lowered = toOpenApiSchema(schema);
  expect(Object.keys(lowered?.properties as Schema)).toEqual(['a', 'b']);
  expect(lowered?.required).toEqual(['a']);
});

it('keeps a property __proto__ of combined schemas', () => {
  const allOf = [JSON.parse('{"properties":{"__proto__":{"type":"number"}}}') as Schema];
  expect(JSON.stringify(toOpenApiSchema({ type: 'object', allOf }))).toContain('"__proto__"');
});

it('returns null for a tool without input', () => {
  expect(toOpenApiSchema({ type: 'object', properties: {} })).toBeNull();
});
