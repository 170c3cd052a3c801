import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { manifestFileSchema } from '../manifest.ts';
import { modelIssues, type ModelChoice } from './model-settings.ts';
import { quirksOf, SERVER_PROFILES } from './server-profiles.ts';

const page = readFileSync(join(import.meta.dirname, '../../../docs/models.md'), 'utf8');
const rows = [...page.matchAll(/^\| (.+) † \| `(.+?)` \| (.+?) \| .+ \| (.+) \|$/gm)].map(
  ([, server, model, profile, sources]) => ({
    server,
    model: parse(model ?? '') as object,
    profile,
    sources: sources ?? '',
  }),
);

it('has a row for each server, with its profile and the source of each quirk', () => {
  expect(rows.map(({ server }) => server)).toEqual(SERVER_PROFILES.map(({ server }) => server));
  for (const [i, { server, quirks }] of SERVER_PROFILES.entries()) {
    const told = Object.entries(quirks).map(
      ([name, [value]]) => `\`${name}: ${Array.isArray(value) ? `[${value.join(', ')}]` : String(value)}\``,
    );
    expect([server, rows[i]?.profile]).toEqual([server, told.join(', ') || 'usual']);
    for (const [, source] of Object.values(quirks)) expect(rows[i]?.sources).toContain(`(${source})`);
    expect(rows[i]?.sources).toMatch(/\]\(https:\/\//);
  }
});

it.each(rows)('has a valid manifest for $server, whose host has the profile', ({ server, model }) => {
  const manifest = manifestFileSchema.parse({ name: 'a', harness: { name: 'model' }, model });
  expect(modelIssues(manifest)).toEqual([]);
  const profile = SERVER_PROFILES.find((one) => one.server === server);
  const quirks = Object.fromEntries(Object.entries(profile?.quirks ?? {}).map(([name, [value]]) => [name, value]));
  expect(quirksOf(manifest.model as ModelChoice)).toMatchObject(quirks);
  const host = new URL(manifest.model?.baseUrl ?? 'https://api.openai.com').hostname;
  expect(profile?.host?.test(host) ?? host === '127.0.0.1').toBe(true);
});

it('explains each quirk with all of its values', () => {
  const shape = manifestFileSchema.shape.model.unwrap().shape.quirks.unwrap().shape;
  const [, section = ''] = page.split('### Quirks');
  const [ofQuirks = ''] = section.split('\n## ');
  const explained = new Map(
    [...ofQuirks.matchAll(/^\| `(\w+)` \| (.+) \| .+ \|$/gm)].map(([, name, values]) => [name, values]),
  );
  for (const [name, schema] of Object.entries(shape)) {
    const inner = schema.unwrap();
    const values = 'element' in inner ? inner.element.options : inner.options;
    for (const value of values)
      expect([name, explained.get(name)]).toEqual([name, expect.stringContaining(`\`${value}\``)]);
  }
});

it.each([
  ['https://notapi.openai.com.example.com/v1', 'max_tokens'],
  ['https://eu.api.openai.com/v1', 'max_completion_tokens'],
  ['https://mine.openai.azure.com/openai/v1', 'max_completion_tokens'],
  ['https://mine.cognitiveservices.azure.com/openai/v1', 'max_completion_tokens'],
  ['https://us-central1-aiplatform.googleapis.com/v1', 'openapi'],
  ['https://aiplatform.googleapis.com.example.com/v1', 'json-schema'],
  ['https://cn-hongkong.dashscope.aliyuncs.com/compatible-mode/v1', 'merged'],
  ['https://codestral.mistral.ai/v1', 'alternating'],
])('identifies the server at %s by its host alone: %s', (baseUrl, quirk) => {
  const model = { provider: 'openai-compatible', name: 'm', baseUrl, silenceMs: 1 } satisfies ModelChoice;
  expect(Object.values(quirksOf(model))).toContain(quirk);
  expect(Object.values(quirksOf({ ...model, quirks: { roles: 'stored' } }))).toContain('stored');
});
