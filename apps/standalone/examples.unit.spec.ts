import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { exampleTools } from './examples.ts';

const ROOT = join(import.meta.dirname, '../..');

/** A machine with Node, npm and bubblewrap in a folder. */
const folder = mkdtempSync(join(tmpdir(), 'spool-examples-'));
const programs = join(folder, 'bin');
const machine = { node: join(programs, 'node'), systemFolders: ['/missing', programs] };
beforeAll(() => {
  mkdirSync(programs);
  for (const name of ['node', 'npx', 'bwrap']) writeFileSync(join(programs, name), '');
});
afterAll(() => rmSync(folder, { recursive: true }));

test('the example gets Node, npm, the packages and the handbook, and nothing else', () => {
  const { TOOL_SERVER_COMMANDS, TOOL_SERVER_FOLDERS = '' } = exampleTools({}, '/nowhere', machine);
  expect(TOOL_SERVER_COMMANDS).toBe(join(programs, 'npx'));
  expect(TOOL_SERVER_FOLDERS.split(',')).toEqual([
    ...[machine.node, join(folder, 'lib/node_modules/npm')],
    ...[join(ROOT, 'node_modules'), `${join(ROOT, 'examples/handbook')}:rw`],
  ]);
});

test.each([
  ['the operator allows programs', { TOOL_SERVER_COMMANDS: '/usr/bin/node' }],
  ['the operator allows none by an empty value', { TOOL_SERVER_COMMANDS: '' }],
  ['the operator shares folders', { TOOL_SERVER_FOLDERS: '/srv' }],
  ['the operator chooses the isolation', { TOOL_SERVER_ISOLATION: 'none' }],
  ['the operator allows files of secrets', { MANIFEST_FILES: '/run/secrets' }],
  ['the checkout is in the data directory', {}, dirname(ROOT)],
  ['bubblewrap is missing', {}, '/nowhere', { ...machine, systemFolders: ['/missing'] }],
  ['npx is missing', {}, '/nowhere', { ...machine, node: '/missing/node' }],
])('nothing is allowed for the example if %s', (_what, env, dataDir = '/nowhere', on = machine) => {
  expect(exampleTools(env, dataDir, on)).toEqual({});
});
