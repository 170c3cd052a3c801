import { spawn, spawnSync } from 'node:child_process';
import { join } from 'node:path';

const MAIN = join(import.meta.dirname, '../../dist/apps/cli/main.js').replace('/dist/dist/', '/dist/');

// Of util-linux: it gives a program a terminal.
const HAS_SCRIPT = spawnSync('script', ['--version']).stdout?.includes('util-linux') === true;
if (!HAS_SCRIPT)
  process.stderr.write('SKIPPED: what spool asks on a terminal needs the program script of util-linux.\n');

interface Shown {
  code: number | null;
  screen: string;
}

/** One call of `spool` on a terminal, without a service; `keys` are typed as soon as `question` is seen. */
function onTerminal(args: string[], question: string, keys: string): Promise<Shown> {
  const command = [process.execPath, MAIN, ...args].map((word) => `'${word}'`).join(' ');
  const env = { PATH: process.env['PATH'], DATA_DIR: '/nonexistent' };
  const child = spawn('script', ['-qec', command, '/dev/null'], { env });
  let screen = '';
  let isAsked = false;
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    screen += text;
    if (isAsked || !screen.includes(question)) return;
    isAsked = true;
    child.stdin.write(keys);
  });
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => resolve({ code, screen }));
  });
}

(HAS_SCRIPT ? describe : describe.skip)('on a terminal', () => {
  test.each([
    ['n', 'n\r', 1, 'Nothing was changed.'],
    ['only Enter', '\r', 1, 'Nothing was changed.'],
    ['Ctrl-D', '\u0004', 1, 'Nothing was changed.'],
    // It goes on, and finds no service.
    ['y', 'y\r', 5, 'No service is configured'],
  ])('what cannot be undone is asked about: %s', async (_, keys, code, told) => {
    const shown = await onTerminal(['org', 'remove-member', 'Acme', 'Ada'], '[y/N]', keys);
    expect(shown).toEqual({ code, screen: expect.stringContaining(told) as string });
    expect(shown.screen).toContain('Remove Ada from Acme?');
  });

  test('a secret that is typed is not shown', async () => {
    const { code, screen } = await onTerminal(['token', 'check'], 'The token: ', 'not-to-be-shown\r');
    expect(screen).toContain('Not a Spool token');
    expect(code).toBe(1);
    expect(screen).not.toContain('not-to-be-shown');
  });
});
