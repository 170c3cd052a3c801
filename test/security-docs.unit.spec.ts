import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '..');
const PAGE = join(ROOT, 'docs/security.md');

/** A link to a test, with its title: `[words](../path.spec.ts "title")`. */
const TEST_LINK = /\[(?<words>[^\]]+)\]\((?<path>[^) ]+\.(?:spec|testsuite)\.ts) "(?<title>[^"]+)"\)/g;

const sections = readFileSync(PAGE, 'utf8')
  .split(/^## /m)
  .slice(1)
  .map((section) => ({ name: section.split('\n')[0]!, text: section }));

/** The rows of all tables with these columns, the last of which names tests. */
const rowsOf = (columns: string) =>
  sections.flatMap(({ name, text }) =>
    text.includes(`| ${columns} |`)
      ? text
          .split('\n')
          .filter((line) => line.startsWith('| ') && !line.startsWith(`| ${columns}`))
          .map((line) => ({ name, threat: line.split('|')[1]!.trim(), tests: line.split('|').at(-2)! }))
      : [],
  );
const boundaries = rowsOf('threat | control | test');
const attacks = rowsOf('attack | before | now | test');
const threats = [...boundaries, ...attacks];
const shown = threats.flatMap(({ threat, tests }) =>
  [...tests.matchAll(TEST_LINK)].map(({ groups }) => {
    const { words = '', path = '', title = '' } = groups!;
    return { threat, words, path, title };
  }),
);

describe('docs/security.md', () => {
  test('has a table of threats for each trust boundary', () => {
    expect([...new Set(boundaries.map(({ name }) => name))]).toEqual([
      'Caller',
      'Browser',
      'End user',
      'Owner of an agent',
      'Tool server',
      'Provider',
      'Worker',
      'Operator',
      'Neighbour',
    ]);
  });

  test('has each attack that worked in the release before', () => {
    expect(attacks).toHaveLength(11);
  });

  test('names a test for each threat', () => {
    expect(threats.filter(({ threat }) => !shown.some((test) => test.threat === threat))).toEqual([]);
  });

  test.each(shown)('$path has “$title”', ({ path, title }) => {
    const file = join(ROOT, 'docs', path);
    expect(existsSync(file)).toBe(true);
    const source = readFileSync(file, 'utf8');
    // Matches a string that begins with the title. A comment or a part of a string is no test.
    expect(["'", '`', '"'].filter((quote) => source.includes(quote + title))).toHaveLength(1);
  });

  test('marks the tests that run only at night', async () => {
    const { nightOnly } = (await import(join(ROOT, 'scripts/night-parts.mjs'))) as { nightOnly: string[] };
    const onlyAtNight = shown.filter(({ path }) => nightOnly.some((pattern) => new RegExp(pattern).test(path)));
    expect(onlyAtNight.length).toBeGreaterThan(0);
    expect(shown.filter(({ words }) => words.endsWith(', at night'))).toEqual(onlyAtNight);
  });

  test('is linked from README.md and SECURITY.md', () => {
    for (const page of ['README.md', 'SECURITY.md']) {
      expect(readFileSync(join(ROOT, page), 'utf8')).toContain('(docs/security.md)');
    }
  });
});
