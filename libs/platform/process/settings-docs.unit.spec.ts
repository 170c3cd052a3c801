import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { configSchema } from './config.ts';
import { loadConfig } from './load-config.ts';
import { envExample, SETTINGS_PAGE, settingsPage } from './settings-docs.ts';

const root = join(import.meta.dirname, '../../..');
const listed = [...envExample().matchAll(/^(# )?([A-Z_]+)=(.+)$/gm)].map(([, off, name, value]) => ({
  name: name!,
  value: value!,
  isDefault: off === undefined,
}));
const envOf = (settings: typeof listed) => Object.fromEntries(settings.map(({ name, value }) => [name, value]));

test.each([
  ['.env.example', envExample()],
  [SETTINGS_PAGE, settingsPage()],
])('%s is what `npm run settings` writes: else run it, read the diff and commit it', (file, text) => {
  expect(readFileSync(join(root, file), 'utf8')).toBe(text);
});

test('.env.example lists every setting, with its default', () => {
  expect(listed.map(({ name }) => name)).toEqual(Object.keys(configSchema.shape));
  const defaults = Object.entries(configSchema.parse({})).map(([name, value]) => [name, String(value)]);
  expect(envOf(listed.filter(({ isDefault }) => isDefault))).toEqual(Object.fromEntries(defaults));
});

test('the examples of .env.example are valid, except that of signing keys', () => {
  const isKeys = ({ name }: { name: string }): boolean => name === 'BROWSER_TOKEN_KEYS';
  const others = listed.filter((setting) => !isKeys(setting));
  expect(Object.keys(loadConfig(envOf(others)))).toEqual(others.map(({ name }) => name));
  // Everyone knows the example, so a process must not start with it.
  expect(() => loadConfig(envOf(listed.filter(isKeys)))).toThrow('BROWSER_TOKEN_KEYS: must be id:secret');
});

test('.env.example and the page of settings name only documents that exist', () => {
  const named = [...envExample().matchAll(/docs\/[\w/-]+\.md/g)].map(([path]) => path);
  const linked = [...settingsPage().matchAll(/\]\(([^)]+)\)/g)].map(([, link]) => join('docs/operations', link!));
  expect([...named, ...linked].filter((path) => !existsSync(join(root, path)))).toEqual([]);
});
