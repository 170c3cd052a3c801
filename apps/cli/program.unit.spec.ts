import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { CommanderError } from 'commander';
import type { CommandSpec } from './command-spec.ts';
import type { Options } from './options.ts';
import { createProgram, GROUPS, SINGLE } from './program.ts';
import { streams } from './cli.testing.ts';

const all: [path: string, spec: CommandSpec][] = [
  ...GROUPS.flatMap(({ name, commands }) =>
    commands.map((spec): [string, CommandSpec] => [`${name} ${nameOf(spec)}`, spec]),
  ),
  ...SINGLE.map((spec): [string, CommandSpec] => [nameOf(spec), spec]),
];

function nameOf({ usage }: CommandSpec): string {
  return usage.split(' ')[0]!;
}

interface Parsed {
  spec: CommandSpec;
  args: string[];
  options: Options;
}

/** What the program would do, without doing it. */
async function parse(args: string[]): Promise<{ parsed: Parsed[]; out: string; err: string }> {
  const parsed: Parsed[] = [];
  const { surroundings, out, err } = streams();
  const program = createProgram(surroundings, async (spec, given, options) => {
    parsed.push({ spec, args: given, options });
  });
  await program.parseAsync(args, { from: 'user' }).catch((error: unknown) => {
    if (!(error instanceof CommanderError)) throw error;
  });
  return { parsed, out: out(), err: err() };
}

/** As a shell does, as far as examples go. */
function split(line: string): string[] {
  const words = line.replace(/ [<>] \S+$/, '').match(/"[^"]*"|\S+/g) ?? [];
  return words.map((word) => word.replaceAll('"', ''));
}

test.each(all)('%s: has a description, and examples that the program takes', async (_, spec) => {
  expect(spec.description).toMatch(/^[A-Z].*\.$/s);
  expect(spec.examples.length).toBeGreaterThan(0);
  for (const [line] of spec.examples) {
    const { parsed, err } = await parse(split(line));
    expect([line, parsed.map((each) => each.spec), err]).toEqual([line, [spec], '']);
  }
});

test.each([...all.map(([path]) => path), ...GROUPS.map(({ name }) => name)])(
  '%s --help: teaches by example',
  async (path) => {
    const { out, parsed } = await parse([...path.split(' '), '--help']);
    expect(parsed).toEqual([]);
    expect(out).toMatch(new RegExp(`Examples:\\n  \\$ spool ${path.split(' ')[0]}`));
  },
);

test.each([
  ['an unknown option', ['org', 'list', '--colour']],
  ['an argument that is missing', ['org', 'create']],
  ['an argument too many', ['org', 'create', 'a', 'b']],
  ['a value that is none of those there are', ['agent', 'access', 'echo', 'everybody']],
  ['a time that is none', ['token', 'create', '--operator', '--name', 'x', '--expires', 'soon']],
  ['a required option that is missing', ['agent', 'apply', '--org', 'Acme']],
])('%s is refused', async (_, args) => {
  const { parsed, err } = await parse(args);
  expect(parsed).toEqual([]);
  expect(err).toContain('error: ');
});

test('options of all commands may stand before and after them', async () => {
  for (const args of [
    ['--json', '--local', 'org', 'list'],
    ['org', 'list', '--local', '--json'],
  ]) {
    expect((await parse(args)).parsed[0]?.options).toEqual({ json: true, local: true });
  }
});

test('a misspelt command is answered with the right one', async () => {
  expect((await parse(['tokn', 'list'])).err).toContain('Did you mean token?');
  expect((await parse(['token', 'lsit'])).err).toContain('Did you mean list?');
});

test('a change that cannot be undone, or of many Runs, has --yes, and no other command', () => {
  const asking = all.filter(([, spec]) => 'asks' in spec).map(([path]) => path);
  expect(asking).toEqual([
    'org remove-member',
    'token revoke',
    'token rotate',
    'agent unpublish',
    'agent rollback',
    'agent delete',
    'agent api',
    'thread terminate',
    'thread delete',
    'run cancel',
    'run retry',
    'confirmation answer',
    'queue pause',
  ]);
});

const ROOT = join(import.meta.dirname, '../..');
const documents = readdirSync(join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.md'))
  .map((file) => join('docs', file));
const shown = ['README.md', 'docker/README.md', ...documents].flatMap((page) => {
  const lines = readFileSync(join(ROOT, page), 'utf8').matchAll(
    /^ *(?:.*\$\()?(?:[A-Z_]+=\S+ )*(?:npx )?spool ([^#|)\n]+)/gm,
  );
  return [...lines].map(([, line = '']): [page: string, line: string] => [
    page,
    line.trim().replace('$OWNER_URL', 'postgres://db.example/spool'),
  ]);
});

test('documents show only commands that the program takes', async () => {
  expect(shown.length).toBeGreaterThan(70);
  for (const [page, line] of shown) {
    const { parsed, err } = await parse(split(line));
    expect([page, line, parsed.length, err]).toEqual([page, line, 1, '']);
  }
});
