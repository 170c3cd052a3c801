import { closeSchemas } from './close-schemas.ts';

it('closes only objects with named properties, at every depth', () => {
  const text = { type: 'string' };
  const free = { type: 'object', additionalProperties: {} };
  const inner = { type: 'object', properties: { text, free } };
  const closed = { ...inner, additionalProperties: false };
  expect(closeSchemas({ oneOf: [inner, { $ref: '#/a' }], items: inner, free, list: [1, null] })).toEqual({
    oneOf: [closed, { $ref: '#/a' }],
    items: closed,
    free,
    list: [1, null],
  });
});
