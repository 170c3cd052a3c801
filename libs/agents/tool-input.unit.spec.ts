import { createLogger } from '#platform';
import { TaskFailed, TaskPool, type RunTask } from '#task-pool';
import { measureTurns } from '#testing';
import { toolInputProblem } from './tool-input.ts';

const unchecked = jest.fn();
beforeEach(() => unchecked.mockReset());

// Real: the task pool.
const pool = new TaskPool({ size: 2, memoryBytes: 160 * 1024 * 1024, logger: createLogger('silent', 'specs') });
afterAll(() => pool.close());
const runTask = jest.fn(pool.runnerFor('one')) as jest.Mock & RunTask;
const context = { runTask, signal: new AbortController().signal, onUnchecked: unchecked };

const problem = (inputSchema: Record<string, unknown>, toolInput: Record<string, unknown>) =>
  toolInputProblem({ name: 'pay', inputSchema }, { toolInput }, context);

const PAY = {
  type: 'object',
  properties: { to: { type: 'object', properties: { name: { type: 'string' } } }, unit: { enum: ['eur', 'usd'] } },
  required: ['to', 'constructor'],
  additionalProperties: false,
};

describe('input that does not fit', () => {
  it('is told with every problem and its path, and no values', async () => {
    const text = await problem(PAY, { to: { name: 5 }, unit: 'secret', extra: 1 });
    expect(text).toBe(
      [
        'The input does not match the schema of the tool pay:',
        `- the input must have required property 'constructor'`,
        '- the input must NOT have additional properties: "extra"',
        '- /to/name must be string',
        '- /unit must be equal to one of the allowed values: ["eur","usd"]',
      ].join('\n'),
    );
    expect(await problem({ ...PAY, required: ['to'] }, { to: {} })).toBeNull();
  });

  it('is told with the first ten problems', async () => {
    const text = await problem(
      { items: { type: 'string' }, properties: { a: { items: { type: 'string' } } } },
      { a: Array(12).fill(1) },
    );
    expect(text?.split('\n')).toHaveLength(1 + 10 + 1);
    expect(text).toContain('- /a/9 must be string\n- and 2 more');
  });

  it('is reported with the number that cannot be passed on exactly', async () => {
    const call = { toolInput: {}, invalidInput: '9007199254740993' };
    expect(await toolInputProblem({ name: 'pay', inputSchema: {} }, call, context)).toBe(
      'The number 9007199254740993 is too large to be passed on exactly. Write it as text, in quotation marks.',
    );
  });

  it('is told with the beginning of the input if it is no JSON object', async () => {
    const call = { toolInput: {}, invalidInput: `{"to": ${'x'.repeat(1_000)}` };
    const text = await toolInputProblem({ name: 'pay', inputSchema: {} }, call, context);
    expect(text).toBe(
      `The input must be a JSON object (at most 50,000 parts and 128 levels). The input begins: {"to": ${'x'.repeat(493)}…`,
    );
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
  ])('%s is checked', async (_what, schema, good, bad) => {
    expect(await problem(schema, good)).toBeNull();
    expect(await problem(schema, bad)).toContain('does not match');
    expect(unchecked).not.toHaveBeenCalled();
  });

  it.each([
    ['of nonsense', { type: 'banana' }],
    ['with a pattern that is none', { properties: { a: { pattern: '(' } } }],
    ['that refers to elsewhere', { $ref: 'https://example.com/schema' }],
    ['that refers to itself', { $ref: '#/$defs/a', $defs: { a: { $ref: '#/$defs/a' } } }],
    ['that is asynchronous', { $async: true, type: 'object' }],
  ])('%s refuses nothing, and that is told once', async (_what, schema) => {
    expect([await problem(schema, { a: 1 }), await problem(schema, { a: 1 })]).toEqual([null, null]);
    expect(unchecked).toHaveBeenCalledTimes(1);
    expect(unchecked).toHaveBeenCalledWith(expect.any(Error));
  });

  it.each<[string, object, object]>([
    ['a pattern that does not end', { a: { pattern: '^(a+)+$' } }, { a: `${'a'.repeat(60)}!` }],
    ['references of references', { a: { $ref: '#/$defs/a20' } }, { a: [1] }],
    [
      'thousands of unique items',
      { a: { uniqueItems: true } },
      { a: Array.from({ length: 15_000 }, (_, i) => ({ i })) },
    ],
  ])(
    'with %s refuses nothing, is told once, and does not hold up the process',
    async (_what, properties, input) => {
      const doubled = Object.fromEntries(
        Array.from({ length: 40 }, (_, i) => {
          const next = { items: { $ref: `#/$defs/a${i + 1}` }, $ref: `#/$defs/a${i + 1}` };
          return [`a${i}`, { allOf: [next, next, { $ref: `#/$defs/a${i + 1}` }] }];
        }),
      );
      // A new schema for each try, because the decision for a schema is kept.
      const prepare = () => {
        unchecked.mockReset();
        return { properties, $defs: { ...doubled, a20: doubled['a0'] ?? {}, a40: { type: 'string' } } };
      };
      const checkTwice = async (schema: Record<string, unknown>): Promise<void> => {
        expect(await problem(schema, input as Record<string, unknown>)).toBeNull();
        expect(await problem(schema, input as Record<string, unknown>)).toBeNull();
        expect(unchecked).toHaveBeenCalledTimes(1);
      };
      await measureTurns(checkTwice, { prepare });
    },
    180_000,
  );

  it('is checked again after a child was killed from outside', async () => {
    const schema = { properties: { a: { pattern: '^x$' } } };
    runTask.mockRejectedValueOnce(new TaskFailed('check-input', 'crashed'));
    expect(await problem(schema, { a: '!' })).toBeNull();
    expect(unchecked).toHaveBeenCalledTimes(1);
    expect(await problem(schema, { a: '!' })).toContain('/a must match pattern');
  });

  it('with large input is checked elsewhere, and here otherwise', async () => {
    const schema = { properties: { a: { items: { type: 'number' } } } };
    runTask.mockClear();
    expect(await problem(schema, { a: Array(2_000).fill(1) })).toBeNull();
    expect(runTask).not.toHaveBeenCalled();
    expect(await problem(schema, { a: [...Array<number>(20_000).fill(1), 'x'] })).toContain('/a/20000 must be number');
    expect(runTask).toHaveBeenCalledTimes(1);
    expect(await problem(schema, { a: Array(200_000).fill('x') })).toBeNull();
    expect(unchecked).toHaveBeenCalledTimes(1);
  });
});
