import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { run } from './cli.testing.ts';
import { EXIT } from './exit-codes.ts';

const ID = '01JD0000000000000000000000';
const diff = '--- before\n+++ after\n@@ -1 +1 @@\n-description: old\n+description: \u001b[2Jnew\n';

/** Tests the output and requests of apply with a scripted API; test/operations/operators.e2e.spec.ts has a real one. */
describe('agent apply', () => {
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'spool-apply-'));
    await writeFile(join(folder, 'a.yaml'), 'name: a\nharness:\n  name: echo\n');
    await writeFile(join(folder, 'notes.txt'), 'no manifest');
  });
  afterAll(() => rm(folder, { recursive: true }));

  const planned = (change: string, more: object = {}) => ({
    ...{ name: 'a', agentId: change === 'created' ? null : ID, change, version: 4, published: false, readiness: [] },
    diff: change === 'unchanged' ? '' : diff,
    ...more,
  });
  const apply = (agent: object, args: string[] = [], published = true) =>
    run(['agent', 'apply', '-f', folder, '--org', ID, ...args], {
      applyManifests: { agents: [agent] },
      getAgent: { agent: { published } },
    });
  const sent = (calls: { name: string; input: unknown }[]) =>
    calls
      .filter(({ name }) => name === 'applyManifests')
      .map(({ input }) => (input as { body: Record<string, unknown> }).body);

  test.each([
    ['created', 0],
    ['updated', 3],
  ])('what is %s is shown, and then applied as it was shown', async (change, expected) => {
    const { code, out, calls } = await apply(planned(change), ['--yes']);
    expect(code).toBe(EXIT.done);
    // Without a terminal no colours, and never the manifest's own.
    expect(out).toContain('-description: old\n+description: \\u001b[2Jnew\n');
    const [shown, applied] = sent(calls);
    expect(shown).toMatchObject({ dryRun: true, manifests: [{ name: 'a' }] });
    const { dryRun: _, ...asShown } = shown!;
    expect(applied).toEqual({ ...asShown, expectedVersions: { a: expected } });
  });

  test('says that the owner of an agent that exists stays', async () => {
    const owned = (change: string) => apply(planned(change), ['--yes', '--owner', ID]);
    expect((await owned('updated')).err).toContain('To change the owner of a: spool agent owner.');
    expect((await owned('created')).err).not.toContain('spool agent owner');
  });

  test('an endless file is read to the bound, and nothing is sent', async () => {
    const { code, err, calls } = await run(['agent', 'apply', '-f', '/dev/zero', '--org', ID], {});
    expect([code, err, calls]).toEqual([
      EXIT.usage,
      expect.stringContaining('/dev/zero:1:1 is larger than 1 MiB\n1 problem; nothing was sent.'),
      [],
    ]);
  });

  test('a file that is named by two paths is sent once', async () => {
    const { calls } = await apply(planned('unchanged'), ['-f', `${folder}/./a.yaml`, '-f', join(folder, 'a.yaml')]);
    expect(sent(calls)[0]?.['manifests']).toHaveLength(1);
  });

  test('what is the same is not asked about and not sent', async () => {
    const { code, out, err, calls } = await apply(planned('unchanged'));
    expect({ code, out, err }).toEqual({
      code: EXIT.done,
      out: 'a: unchanged\n',
      err: 'Nothing to change.\n',
    });
    expect(sent(calls)).toHaveLength(1);
  });

  test('publishing what is the same is a change', async () => {
    const agent = planned('unchanged', { published: true });
    expect(sent((await apply(agent, ['--publish', '--yes'], true)).calls)).toHaveLength(1);
    const { out, calls } = await apply(agent, ['--publish', '--yes'], false);
    expect(out).toContain('a: unchanged, will be published');
    expect(sent(calls)[1]).toMatchObject({ publish: true, expectedVersions: { a: 4 } });
  });

  test('a dry run sends nothing that changes', async () => {
    const { code, err, calls } = await apply(planned('updated'), ['--dry-run']);
    expect({ code, err }).toEqual({ code: EXIT.done, err: 'Dry run: nothing was changed.\n' });
    expect(sent(calls).map(({ dryRun }) => dryRun)).toEqual([true]);
  });

  test('with --json the result is one document, also where something was shown before', async () => {
    const { out, err } = await apply(planned('updated'), ['--json', '--yes']);
    expect(JSON.parse(out)).toMatchObject([{ name: 'a', change: 'updated' }]);
    expect(err).toContain('-description: old');
  });

  test('a folder without manifests, and a file that is not there, are refused before anything is sent', async () => {
    const empty = await mkdtemp(join(folder, 'empty-'));
    for (const path of [empty, join(folder, 'missing.yaml')]) {
      const { code, calls } = await run(['agent', 'apply', '-f', path, '--org', ID], {});
      expect({ code, calls }).toEqual({ code: EXIT.usage, calls: [] });
    }
  });
});
