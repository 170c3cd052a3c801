import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { run } from './cli.testing.ts';
import { EXIT } from './exit-codes.ts';

const LOST = { name: 'lost', harness: { name: 'model' }, model: { provider: 'anthropic', name: 'm' } };

describe('agent check', () => {
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'spool-check-'));
    await writeFile(join(folder, 'good.yaml'), 'name: good\nharness:\n  name: echo\n');
    await writeFile(join(folder, 'invalid.yaml'), 'name: invalid\nharness: 7\n');
    await writeFile(join(folder, 'lost.json'), JSON.stringify(LOST));
  });
  afterAll(() => rm(folder, { recursive: true }));

  // Without scripted responses, because a command that called the service would fail.
  const check = (file: string, ...args: string[]) => run(['agent', 'check', join(folder, file), ...args], {});

  it.each<[string, string[], number, RegExp]>([
    ['good.yaml', [], EXIT.done, /^good would run\.\n\nCHECK +STATE +FOUND\nsettings +works +The settings/],
    ['good.yaml', ['--live'], EXIT.done, /^good would run\./],
    ['lost.json', [], EXIT.failed, /^lost would not run\.[^]*model\.apiKey: is missing/],
    ['invalid.yaml', [], EXIT.failed, /^Invalid manifests:[^]*invalid\.yaml:2:10 harness/],
    ['none.yaml', [], EXIT.usage, /^$/],
    ['', [], EXIT.failed, /^Invalid manifests:[^]*good would run\.[^]*lost would not run\./],
  ])('%s %j', async (file, args, exit, shown) => {
    const { code, out } = await check(file, ...args);
    expect(code).toBe(exit);
    expect(out).toMatch(shown);
  });

  it('prints the rows of all manifests for programs', async () => {
    const { code, out } = await check('', '--json');
    expect([code, JSON.parse(out)]).toEqual([
      EXIT.failed,
      [
        expect.objectContaining({ agent: null, check: 'manifest', state: 'does not work', needed: true }),
        expect.objectContaining({ agent: 'good', check: 'settings', state: 'works', needed: false }),
        expect.objectContaining({ agent: 'lost', check: 'settings', state: 'does not work', needed: true }),
      ],
    ]);
  });
});
