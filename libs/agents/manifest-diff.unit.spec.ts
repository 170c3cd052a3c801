import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { applyPatch } from 'diff';
import { diffManifests } from './manifest-diff.ts';
import { parseManifests } from './manifest-file.ts';
import { agentManifestSchema, type AgentManifest, type AgentManifestInput } from './manifest.ts';

const manifest = (more: Partial<AgentManifestInput> = {}) =>
  agentManifestSchema.parse({ name: 'echo', harness: { name: 'echo' }, ...more });

it('shows what changes, with its place, defaults filled in and secrets as references', async () => {
  const server = { name: 'mail', url: 'https://x', headers: { 'X-B': '1', Authorization: { env: 'MAIL' } } };
  const after = manifest({ toolServers: [server], limits: { workMs: '10m' } });
  expect(await diffManifests(manifest(), after)).toBe(`--- before
+++ after
@@ -4,11 +4,21 @@
 harness:
   name: echo
 instructions: ""
-toolServers: []
+toolServers:
+  - name: mail
+    required: true
+    startMs: 20000
+    timeoutMs: 60000
+    idempotent: []
+    url: https://x
+    headers:
+      Authorization:
+        env: MAIL
+      X-B: "1"
 tools: []
 limits:
   queueMs: 600000
-  workMs: 3600000
+  workMs: 600000
   waitMs: 604800000
   maxLosses: 3
   providerRetryMs: 900000
`);
});

it('shows all of a manifest that is new', async () => {
  const lines = (await diffManifests(null, manifest({ instructions: 'One.\nTwo.\n' }))).split('\n');
  expect(lines.slice(0, 2)).toEqual(['--- /dev/null', '+++ after']);
  expect(lines).toEqual(expect.arrayContaining(['+name: echo', '+instructions: |', '+  One.', '+whenBusy: reject']));
  expect(lines.slice(3).every((line) => line.startsWith('+') || line === '')).toBe(true);
});

it('has nothing to show of the same in another order, as jsonb gives it back', async () => {
  const harness = { name: 'x', b: { d: [1, { f: 1, e: 2 }], c: 2 }, a: 1 };
  const one = manifest({ harness, toolServers: [{ name: 'a', command: 'x', env: { B: '1', A: '2' } }] });
  const other = {
    ...(Object.fromEntries(Object.entries(one).toReversed()) as typeof one),
    harness: { a: 1, b: { c: 2, d: [1, { e: 2, f: 1 }] }, name: 'x' },
    toolServers: [
      {
        env: { A: '2', B: '1' },
        args: [],
        command: 'x',
        network: false,
        idempotent: [],
        startMs: 20_000,
        timeoutMs: 60_000,
        required: true,
        name: 'a',
      },
    ],
  };
  expect(await diffManifests(one, other)).toBe('');
  // The first pattern that fits decides, so here the order is a difference.
  const tools = [{ pattern: 'a', policy: 'ask' as const }, { pattern: 'b', policy: 'deny' as const }]; // oxfmt-ignore
  expect(await diffManifests(manifest({ tools }), manifest({ tools: tools.toReversed() }))).not.toBe('');
});

it('gives up on the shortest diff of long texts that have nothing in common', async () => {
  const text = (word: string) => Array.from({ length: 2_500 }, (_, i) => `${word} ${i}\n`).join('');
  const [before, after] = [manifest({ instructions: text('old') }), manifest({ instructions: text('new') })];
  const diff = await diffManifests(before, after);
  expect(diff.split('\n')[2]).toBe('@@ -1,2516 +1,2516 @@');
  expect(applyPatch(await yamlOf(before), diff)).toBe(await yamlOf(after));
});

/** A new manifest is shown whole: without the signs, that is its YAML. */
async function yamlOf(shown: AgentManifest): Promise<string> {
  return (await diffManifests(null, shown)).split('\n').slice(3).map((line) => line.slice(1)).join('\n'); // oxfmt-ignore
}

const text = fc.string({ unit: 'grapheme', maxLength: 40 });
const values = fc.dictionary(fc.stringMatching(/^[A-Z]{1,8}$/), fc.oneof(text, fc.constant({ file: '/x' })), {
  maxKeys: 3,
});
const anyManifest = fc
  .record(
    {
      description: text,
      instructions: fc.array(text, { maxLength: 4 }).map((lines) => lines.join('\n')),
      harness: fc.dictionary(text, fc.jsonValue(), { maxKeys: 3 }).map((settings) => ({ ...settings, name: 'x' })),
      toolServers: values.map((env) => [{ name: 'a', command: 'x', env }]),
      whenBusy: fc.constantFrom('reject' as const, 'enqueue' as const),
    },
    { requiredKeys: [] },
  )
  .map((more) => ({ ...more, name: 'any', harness: more.harness ?? { name: 'x' } }))
  .filter((input) => parseManifests(JSON.stringify(input), 'x').problems.length === 0)
  .map((input) => agentManifestSchema.parse(JSON.parse(JSON.stringify(input))));

it('shows YAML that reads as the same manifest, and diffs that make the one of the other', async () => {
  await fc.assert(
    fc.asyncProperty(anyManifest, anyManifest, async (before, after) => {
      const { manifests, problems } = parseManifests(await yamlOf(after), 'x');
      expect(problems).toEqual([]);
      expect(manifests[0]!.manifest).toEqual(after);
      const diff = await diffManifests(before, after);
      expect(diff === '').toBe(isDeepStrictEqual(before, after));
      if (diff !== '') expect(applyPatch(await yamlOf(before), diff)).toBe(await yamlOf(after));
    }),
    { numRuns: 40 },
  );
});
