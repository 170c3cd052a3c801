import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseDocument } from 'yaml';
import { z } from 'zod';
import { echoHarness } from './echo/echo-harness.ts';
import { diffManifests } from './manifest-diff.ts';
import { parseManifests } from './manifest-file.ts';
import { manifestFileSchema, type AgentManifest } from './manifest.ts';

const ROOT = join(import.meta.dirname, '../..');
const page = readFileSync(join(ROOT, 'docs/manifests.md'), 'utf8');
const rows = [...page.matchAll(/^\| `([^`]+)` \| ([^|\s]*) ?\| (.*) \|$/gm)];
const fields = rows.map(([, field = '', fallback = '', meaning = '']) => ({ field, fallback, meaning }));

type JsonSchema = z.core.JSONSchema.JSONSchema;

/** Returns the fields of a schema by the names of the page. Secrets have another table; fallback models have the fields of `model`. */
function fieldsOf(schema: JsonSchema, path = ''): [field: string, schema: JsonSchema][] {
  if (path === 'model.apiKey' || path === 'fallbackModels[]') return [];
  const inner = (schema.anyOf ?? []).flatMap((part) => fieldsOf(part, path));
  const entries = schema.items === undefined ? [] : fieldsOf(schema.items as JsonSchema, `${path}[]`);
  const own = Object.entries(schema.properties ?? {}).flatMap(([name, child]) => {
    const field = path === '' ? name : `${path}.${name}`;
    return [[field, child as JsonSchema] as [string, JsonSchema], ...fieldsOf(child as JsonSchema, field)];
  });
  return [...own, ...inner, ...entries];
}

const known = new Map(fieldsOf(z.toJSONSchema(manifestFileSchema, { io: 'input' })));

const parse = (text: string): AgentManifest => {
  const { manifests, problems } = parseManifests(text, 'docs');
  expect(problems).toEqual([]);
  expect(manifests).toHaveLength(1);
  return manifests[0]!.manifest;
};

it('names every field there is, and no other, in their order', () => {
  expect(known.size).toBeGreaterThan(30);
  expect(fields.map(({ field }) => field)).toEqual([...known.keys()]);
});

it('says how much of each is allowed', () => {
  for (const { field, meaning } of fields) {
    const { maximum, maxLength, maxItems } = known.get(field) ?? {};
    for (const limit of [maximum, maxLength, maxItems].filter((value) => value !== undefined))
      if (!meaning.includes('limits as for'))
        expect([field, meaning]).toEqual([field, expect.stringContaining(limit.toLocaleString('en-US'))]);
  }
});

const smallest = `
name: any
harness: { name: any }
model: { provider: anthropic, name: any, settings: {}, quirks: {}, prices: { input: 1, output: 1 } }
toolServers: [{ name: stdio, command: any }, { name: http, url: 'https://any' }]
tools: [{ pattern: any, policy: ask }]
limits: {}
concurrency: { runs: 1 }
`;
const place = (field: string) =>
  field.split('.').flatMap((step) => {
    const index = /url|headers/.test(field) ? 1 : 0;
    return step.endsWith('[]') ? [step.slice(0, -2), index] : [step];
  });

it.each(fields)('says the default of $field', async ({ field, fallback }) => {
  const document = parseDocument(smallest);
  if (fallback === 'optional' || fallback === '') {
    document.deleteIn(place(field));
    const { problems } = parseManifests(String(document), 'docs');
    expect(problems.length > 0).toBe(fallback === '');
    return;
  }
  document.setIn(place(field), parseDocument(fallback.replaceAll('`', '')).contents);
  const given = parse(String(document));
  document.deleteIn(place(field));
  expect(await diffManifests(parse(String(document)), given)).toBe('');
});

const examples = [...page.matchAll(/```(?:yaml|json)\n(.*?)```/gs)].map(([, example = '']) => example);

it('has examples that are right, with every field in one of them', () => {
  expect(examples.length).toBeGreaterThan(3);
  const texts = examples.map((example) => JSON.stringify(parse(example)));
  const names = fields.map(({ field }) => field.split('.').at(-1)!);
  expect(names.filter((name) => !texts.some((text) => text.includes(`"${name}":`)))).toEqual([]);
});

it('comes with an example of the echo agent, which runs', () => {
  const manifest = parse(readFileSync(join(ROOT, 'examples/agents/echo.yaml'), 'utf8'));
  expect(manifest.harness).toEqual({ name: 'echo', pauseMs: 20 });
  expect(echoHarness().checkSettings(manifest)).toEqual([]);
});
