import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { failureAt, parseScript, readScripts } from './script.ts';

describe('scripts of the provider', () => {
  it('in their folder are all right', () => {
    const names = [...readScripts(join(import.meta.dirname, 'scripts')).keys()];
    expect(names).toEqual(expect.arrayContaining(['hello', 'thinking', 'parallel-tools', 'citations']));
  });

  it.each<[string, unknown, RegExp]>([
    ['without steps', { steps: [] }, /odd.*\n.*>=1 items.*\n.*at steps/s],
    ['with a word that it does not know', { steps: [{ txt: ['a'] }] }, /Unrecognized key: "txt"\s+→ at steps\[0\]/],
    ['with a template that has no value', { steps: [{ text: ['{{nothing}}'] }] }, /no value for \{\{nothing\}\}/],
    [
      'with a failure of two ways',
      { steps: [{ failures: [{ hang: true, status: 500 }] }] },
      /must fail in one way.*failures\[0\]/s,
    ],
    ['with a failure of no way', { steps: [{ failures: [{ times: 2 }] }] }, /must fail in one way/],
    ['with a tool call of no input', { steps: [{ toolCalls: [{ name: 'a' }] }] }, /either input or rawArguments/],
  ])('%s are refused', (_, script, message) => {
    expect(() => parseScript('odd', script)).toThrow(message);
  });

  it('that are no YAML are named', () => {
    const folder = mkdtempSync(join(tmpdir(), 'scripts-'));
    writeFileSync(join(folder, 'odd.yaml'), 'steps: [');
    expect(() => readScripts(folder)).toThrow(/script odd is no YAML/);
    rmSync(folder, { recursive: true });
  });

  it('fail one request after the other', () => {
    const { steps } = parseScript('odd', {
      steps: [{ failures: [{ status: 429, times: 2 }, { hang: true }] }],
    });
    const ways = [0, 1, 2, 3].map((index) => failureAt(steps[0]!.failures, index));
    expect(ways.map((way) => way?.status ?? way?.hang)).toEqual([429, 429, true, undefined]);
  });
});
