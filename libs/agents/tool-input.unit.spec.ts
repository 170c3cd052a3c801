import { expectWithin, timedTest } from '#testing';
import { toolInputProblem } from './tool-input.ts';

const unchecked = jest.fn();
beforeEach(() => unchecked.mockReset());

const problem = (inputSchema: Record<string, unknown>, toolInput: Record<string, unknown>) =>
  toolInputProblem({ name: 'pay', inputSchema }, { toolInput }, unchecked);

const PAY = {
  type: 'object',
  properties: { to: { type: 'object', properties: { name: { type: 'string' } } }, unit: { enum: ['eur', 'usd'] } },
  required: ['to', 'constructor'],
  additionalProperties: false,
};

describe('input that does not fit', () => {
  it('is told with every problem and its path, and no values', () => {
    const text = problem(PAY, { to: { name: 5 }, unit: 'secret', extra: 1 });
    expect(text).toBe(
      [
        'The input does not fit the tool pay:',
        `- the input must have required property 'constructor'`,
        '- the input must NOT have additional properties: "extra"',
        '- /to/name must be string',
        '- /unit must be equal to one of the allowed values: ["eur","usd"]',
      ].join('\n'),
    );
    expect(problem({ ...PAY, required: ['to'] }, { to: {} })).toBeNull();
  });

  it('is told with the first ten problems', () => {
    const text = problem(
      { items: { type: 'string' }, properties: { a: { items: { type: 'string' } } } },
      { a: Array(12).fill(1) },
    );
    expect(text?.split('\n')).toHaveLength(1 + 10 + 1);
    expect(text).toContain('- /a/9 must be string\n- and 2 more');
  });

  it('is told with its beginning where it is no JSON object', () => {
    const call = { toolInput: {}, invalidInput: `{"to": ${'x'.repeat(1_000)}` };
    const text = toolInputProblem({ name: 'pay', inputSchema: {} }, call, unchecked);
    expect(text).toBe(`The input must be a JSON object. What was written begins: {"to": ${'x'.repeat(493)}…`);
  });
});

describe('a schema', () => {
  it.each<[string, Record<string, unknown>, Record<string, unknown>, Record<string, unknown>]>([
    ['of 2020-12', { properties: { a: { prefixItems: [{ type: 'string' }] } } }, { a: ['x'] }, { a: [1] }],
    [
      'of draft-07',
      { $schema: 'http://json-schema.org/draft-07/schema#', properties: { a: { items: [{ type: 'string' }] } } },
      { a: ['x'] },
      { a: [1] },
    ],
    [
      'with references',
      { $ref: '#/$defs/a', $defs: { a: { properties: { a: { $ref: '#/$defs/a' } }, maxProperties: 1 } } },
      { a: { a: {} } },
      { a: { a: {}, b: {} } },
    ],
    [
      'with a pattern that Unicode does not take',
      { properties: { a: { pattern: '^[\\w\\-]+$' } } },
      { a: 'x-y' },
      { a: '!' },
    ],
    [
      'with unknown keywords and formats',
      { properties: { a: { format: 'colour', hue: 1, type: 'string' } } },
      { a: 'x' },
      { a: 1 },
    ],
  ])('%s is checked', (_what, schema, good, bad) => {
    expect(problem(schema, good)).toBeNull();
    expect(problem(schema, bad)).toContain('does not fit');
    expect(unchecked).not.toHaveBeenCalled();
  });

  it.each([
    ['of nonsense', { type: 'banana' }],
    ['with a pattern that is none', { properties: { a: { pattern: '(' } } }],
    ['that refers to elsewhere', { $ref: 'https://example.com/schema' }],
    ['that refers to itself', { $ref: '#/$defs/a', $defs: { a: { $ref: '#/$defs/a' } } }],
    ['that is asynchronous', { $async: true, type: 'object' }],
  ])('%s refuses nothing, and that is told once', (_what, schema) => {
    expect([problem(schema, { a: 1 }), problem(schema, { a: 1 })]).toEqual([null, null]);
    expect(unchecked).toHaveBeenCalledTimes(1);
    expect(unchecked).toHaveBeenCalledWith(expect.any(Error));
  });

  timedTest(
    'with a pattern that does not end refuses nothing, and ends',
    async () => {
      unchecked.mockReset();
      const schema = { properties: { a: { pattern: '^(a+)+$' } } };
      expect(problem(schema, { a: 'aaa' })).toBeNull();
      const before = performance.now();
      expect(problem(schema, { a: `${'a'.repeat(60)}!` })).toBeNull();
      expect(problem(schema, { a: `${'a'.repeat(60)}!` })).toBeNull();
      expect(unchecked).toHaveBeenCalledTimes(1);
      expectWithin(2_000, performance.now() - before, 'both checks');
    },
    10_000,
  );
});
