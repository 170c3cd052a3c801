import { manifestIssues } from './manifest-issues.ts';
import { agentManifestSchema, manifestFileSchema } from './manifest.ts';

const written = {
  name: 'a',
  harness: { name: 'echo', pauseMs: 20 },
  instructions: 'Be kind.',
  model: { provider: 'anthropic', name: 'm', apiKey: { env: 'KEY' }, settings: { temperature: 1 } },
  toolServers: [
    { name: 'a', command: 'x', env: { A_KEY: { file: '/a' } } },
    { name: 'b', required: false, url: 'https://x', headers: { 'X-Plain': 'text' } },
  ],
  tools: [{ pattern: '*', policy: 'ask' }],
  limits: { workMs: 5 },
  concurrency: { runs: 3 },
};

/** Each map of a manifest, the harness's own apart, with a field that the next release may have. */
function withMore(value: unknown, key = ''): unknown {
  if (Array.isArray(value)) return value.map((entry) => withMore(entry));
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).map(([name, child]) => [name, withMore(child, name)]);
  const named = ['harness', 'env', 'headers'].includes(key);
  return { ...Object.fromEntries(entries), ...(named ? {} : { fromTheNextRelease: 1 }) } as unknown;
}

it('reads what the first release has stored', () => {
  const limits = { queueMs: 600_000, workMs: 3_600_000, waitMs: 604_800_000, maxLosses: 3, maxSteps: 100 };
  const rest = { name: 'echo', description: 'd', kind: 'pet', harness: { name: 'echo', pauseMs: 20 }, tools: [] };
  const stored = { ...rest, limits, whenBusy: 'enqueue' };
  const added = { limits: { ...limits, providerRetryMs: 900_000 }, instructions: '', toolServers: [] };
  expect(agentManifestSchema.parse(stored)).toEqual({ ...stored, ...added });
});

it('reads in a stored manifest what the next release has written, and refuses it in a file', () => {
  const known = agentManifestSchema.parse(written);
  expect(known).toMatchObject(written);
  const more = withMore(written);
  expect(agentManifestSchema.parse(more)).toEqual(known);
  expect(manifestFileSchema.parse(written)).toEqual(known);

  const unknown = JSON.stringify(more).match(/fromTheNextRelease/g) ?? [];
  expect(unknown.length).toBeGreaterThan(8);
  const refused = manifestIssues(manifestFileSchema, more).filter(({ path }) => path.at(-1) === 'fromTheNextRelease');
  expect(refused).toHaveLength(unknown.length);
});

it('stores what it has read: a manifest that was read reads the same', () => {
  const manifest = agentManifestSchema.parse(written);
  expect(agentManifestSchema.parse(JSON.parse(JSON.stringify(manifest)))).toEqual(manifest);
  expect(manifestFileSchema.parse(manifest)).toEqual(manifest);
});
