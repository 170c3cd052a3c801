import { firstInexact, isMark, parseExactly, replaceInexact, stringifyExactly } from './exact-numbers.ts';

describe('numbers that a double cannot hold', () => {
  it.each([
    ['{"id":9007199254740993}', '9007199254740993'],
    ['[-9007199254740993]', '-9007199254740993'],
    ['{"id": 9007199254740993.0}', '9007199254740993.0'],
    ['{"id":9007199254740993e0}', '9007199254740993e0'],
    ['{"id":9.007199254740993e15}', '9.007199254740993e15'],
    ['{"id":-0.9007199254740993E+16}', '-0.9007199254740993E+16'],
    ['{"id":90071992547409930e-1}', '90071992547409930e-1'],
    ['{"n":1e400}', '1e400'],
    ['{"n":-1E+309}', '-1E+309'],
    [`{"n":${'9'.repeat(400)}}`, '9'.repeat(400)],
    ['{"a\\\\":9007199254740993}', '9007199254740993'],
    ['[1, {"b": [12345678901234567890]}]', '12345678901234567890'],
    ['9007199254740993', '9007199254740993'],
  ])('are found in %p', (json, number) => {
    expect(firstInexact(json)).toBe(number);
  });

  it.each([
    '{"n":1.0}',
    '{"n":1e2}',
    '{"n":[0e5,0.0E-9,1e21,1e23,9.007199254740992e15]}',
    '{"n":0.1234567890123456789}',
    '{"n":[9007199254740993.5,1.2345678901234567891e2,9007199254740993e-1]}',
    '{"n":9007199254740992}',
    '{"n":9007199254740994}',
    '{"n":10000000000000000000000}',
    '{"n":1.7976931348623157e308}',
    '{"n":1e-400}',
    '{"n":-0}',
    '{"text":"9007199254740993 \\"1e400"}',
    '{"9007199254740993":"\\\\"}',
    '"9007199254740993',
    '',
  ])('are not found in %p', (json) => {
    expect(firstInexact(json)).toBeNull();
  });

  it('are all replaced, and nothing else changes', () => {
    const json = '{"a":9007199254740993,"b":"9007199254740993","c":[1e999,1.5,2]}';
    expect(replaceInexact(json, (number) => `"${number}"`)).toBe(
      '{"a":"9007199254740993","b":"9007199254740993","c":["1e999",1.5,2]}',
    );
  });

  it('stay unchanged by parsing and writing', () => {
    const json = '{"a":{"id":9007199254740993,"text":"9007199254740993"},"b":[1e999,-0.5]}';
    const value = parseExactly(json) as { a: { id: unknown; text: unknown } };
    expect(stringifyExactly(value)).toBe(json);
    expect([isMark(value.a.id), isMark(value.a.text)]).toEqual([true, false]);
  });

  it('are found after a string of a million escapes', () => {
    const json = `{"a":"${'\\"'.repeat(500_000)}","b":1,"c":9007199254740993}`;
    expect(firstInexact(json)).toBe('9007199254740993');
  });
});
