import { existsSync, readdirSync, readFileSync } from 'node:fs';
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

/** The pages whose `sh` blocks a test types, and the test. Blocks `sh not-run` are only read. */
const TYPED: Record<string, string> = {
  'README.md': 'test/support/newcomer.ts',
  'docs/operations/backup.md': 'test/operations/backup.e2e.spec.ts',
  'docs/api/clients.md': 'test/docs/clients.e2e.spec.ts',
  'docs/api/chat.md': 'test/client/chat.e2e.spec.ts',
};
/** docs.e2e types all other pages of the folder. */
const typedBy = (page: string): string | undefined =>
  TYPED[page] ?? (page.startsWith('docs/api/') ? 'test/docs/docs.e2e.spec.ts' : undefined);
/** How many blocks of commands no test types. This number only becomes smaller. */
const MOST_NOT_RUN = 34;
const ROOT = join(DOCS, '../..');
const COMMAND = /^ *(?:\w+=\S+ )*(?:npx|npm|node|spool|docker|kubectl|curl|psql|pg_\w+|cp|export) /m;
const blocks = ['README.md', 'CONTRIBUTING.md', 'docker/README.md', ...guides.map((page) => `docs/${page}`)].flatMap(
  (page) =>
    [...readFileSync(join(ROOT, page), 'utf8').matchAll(/^( *)```(.*)\n([^]*?)^\1```$/gm)].map(
      ([, , label = '', text = '']) => ({ page, label, text }),
    ),
);

it('each block of commands is in a document whose commands a test types, or is marked as not run', () => {
  const notTyped = blocks.filter(({ page, label }) => label === 'sh' && typedBy(page) === undefined);
  const notLabelled = blocks.filter(({ label, text }) => label === '' && COMMAND.test(text));
  expect([...notTyped, ...notLabelled]).toEqual([]);
  expect(Object.values(TYPED).filter((test) => !existsSync(join(ROOT, test)))).toEqual([]);
  expect(blocks.filter(({ label }) => label === 'sh').length).toBeGreaterThan(30);
  expect(blocks.filter(({ label }) => label === 'sh not-run').length).toBeLessThanOrEqual(MOST_NOT_RUN);
});
