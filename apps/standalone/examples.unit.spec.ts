import { dirname, join } from 'node:path';
import { exampleTools } from './examples.ts';

const ROOT = join(import.meta.dirname, '../..');

test('the example gets npx, the packages and the handbook, and nothing else of the checkout', () => {
  const { TOOL_SERVER_COMMANDS, TOOL_SERVER_FOLDERS = '' } = exampleTools({}, '/nowhere');
  expect(TOOL_SERVER_COMMANDS).toBe(join(dirname(process.execPath), 'npx'));
  const ofCheckout = TOOL_SERVER_FOLDERS.split(',').filter((path) => path.startsWith(ROOT));
  expect(ofCheckout).toEqual([join(ROOT, 'node_modules'), `${join(ROOT, 'examples/handbook')}:rw`]);
});

test.each([
  ['allows programs', { TOOL_SERVER_COMMANDS: '/usr/bin/node' }],
  ['allows none by an empty value', { TOOL_SERVER_COMMANDS: '' }],
  ['shares folders', { TOOL_SERVER_FOLDERS: '/srv' }],
  ['chooses the isolation', { TOOL_SERVER_ISOLATION: 'none' }],
  ['allows files of secrets', { MANIFEST_FILES: '/run/secrets' }],
])('nothing is allowed for the example if the operator %s', (_what, env) => {
  expect(exampleTools(env, '/nowhere')).toEqual({});
});

test('nothing is allowed for the example if the checkout is in the data directory', () => {
  expect(exampleTools({}, dirname(ROOT))).toEqual({});
});
