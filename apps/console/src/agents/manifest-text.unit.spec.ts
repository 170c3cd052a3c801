import { manifestDiff, manifestText } from './manifest-text.ts';

const manifest = {
  tools: [{ policy: 'ask', pattern: 'send_*' }],
  harness: { pauseMs: 5, name: 'echo' },
  name: 'support',
  instructions: 'Be kind.\nAsk first.\n',
};

describe('manifestText', () => {
  test('has the fields in the order of people, whatever the order in which they came', () => {
    expect(manifestText(manifest, 'yaml')).toBe(`name: support
harness:
  name: echo
  pauseMs: 5
instructions: |
  Be kind.
  Ask first.
tools:
  - pattern: send_*
    policy: ask
`);
    expect(manifestText({ harness: { name: 'echo' }, name: 'a' }, 'json')).toBe(
      '{\n  "name": "a",\n  "harness": {\n    "name": "echo"\n  }\n}\n',
    );
  });

  test('does not fold long lines, and says twice what is twice the same', () => {
    const limits = { maxSteps: 1 };
    const text = manifestText({ description: 'word '.repeat(60).trim(), harness: limits, limits }, 'yaml');
    expect(text.split('\n')[0]).toBe(`description: ${'word '.repeat(60).trim()}`);
    expect(text).not.toMatch(/[&*]/);
  });
});

describe('manifestDiff', () => {
  test('is nothing where both say the same in another order', () => {
    const again = { ...manifest, tools: [{ pattern: 'send_*', policy: 'ask' }] };
    expect(manifestDiff(manifest, again)).toEqual([]);
  });

  test('shows changed lines with those around them, and a gap for what is far from both', () => {
    const instructions = Array.from({ length: 12 }, (_, i) => `Line ${i}.\n`).join('');
    const lines = manifestDiff(
      { ...manifest, instructions },
      { ...manifest, name: 'help', instructions: instructions.replace('Line 11', 'Line eleven') },
    );
    expect(lines.map(({ kind, text }) => `${kind} ${text}`)).toEqual([
      'removed name: support',
      'added name: help',
      'same harness:',
      'same   name: echo',
      'same   pauseMs: 5',
      'gap ⋯',
      'same   Line 8.',
      'same   Line 9.',
      'same   Line 10.',
      'removed   Line 11.',
      'added   Line eleven.',
      'same tools:',
      'same   - pattern: send_*',
      'same     policy: ask',
    ]);
  });

  test('shows all of both where they have nothing in common and are long', () => {
    const long = (word: string): string => Array.from({ length: 700 }, (_, i) => `${word} ${i}\n`).join('');
    const lines = manifestDiff({ instructions: long('old') }, { instructions: long('new') });
    expect([lines.length, lines[0]?.kind, lines.at(-1)]).toEqual([
      1402,
      'removed',
      { kind: 'added', text: '  new 699' },
    ]);
  });
});
