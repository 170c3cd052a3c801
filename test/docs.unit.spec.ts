import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

const DOCS = join(import.meta.dirname, '../docs/api');
const read = (page: string): string => readFileSync(join(DOCS, page), 'utf8');
const pages = readdirSync(DOCS).filter((file) => file.endsWith('.md'));
it.each(pages.filter((page) => page !== 'README.md'))('docs/api/README.md links to %s', (page) => {
  expect(read('README.md')).toContain(`](${page})`);
});

const START = join(DOCS, '../README.md');
/** All pages except decisions and the specification, which have start pages of their own. */
const guides = readdirSync(dirname(START), { recursive: true, encoding: 'utf8' }).filter(
  (file) => file.endsWith('.md') && file !== 'README.md' && !/^(adr|spec)\//.test(file),
);

it.each(guides)('docs/%s is linked from docs/README.md, and its first line names its readers', (page) => {
  expect(readFileSync(START, 'utf8')).toContain(`](${page})`);
  const readers = /^# .+\n\nFor .*(application engineers|operators|owners of agents|contributors)/;
  expect(readFileSync(join(dirname(START), page), 'utf8')).toMatch(readers);
});

it('README.md has at most 150 lines', () => {
  expect(readFileSync(join(DOCS, '../../README.md'), 'utf8').split('\n').length - 1).toBeLessThanOrEqual(150);
});
