import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { addAgent } from './support/more-agents.ts';
import { SpoolCommand } from './support/spool-command.ts';
import { startSystem, type System } from './support/system.ts';
import { describeOnTerminal, Terminal } from './support/terminal.ts';

const CTRL_C = '\u0003';
const CTRL_D = '\u0004';
/** An answer that ends only when it is stopped. */
const ENDLESS = 'Count /pause 50ms /pieces 9999';

/** Tests the built command `spool chat` with a real service. */
describe('spool chat', () => {
  let system: System;
  let env: Record<string, string>;
  let spool: SpoolCommand;
  let folder: string;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'spool-chat-'));
    system = await startSystem({ env: { BROWSER_TOKEN_KEYS: `k1:${'a'.repeat(43)}=` } });
    const [{ caller }] = await Promise.all([system.startApi(), system.startWorker()]);
    env = { SPOOL_URL: new URL(caller.baseUrl).origin, SPOOL_TOKEN: system.operatorToken };
    spool = new SpoolCommand(env);
  }, 90_000);

  afterAll(async () => {
    await system?.stop();
    await rm(folder, { recursive: true, force: true });
  });

  describe('without a terminal', () => {
    test('sends standard input as one message, and writes only the answer', async () => {
      const { code, out, err } = await spool.run(['chat'], { input: 'Hello,\nSpool\n' });
      expect([code, out]).toEqual([0, 'You said: Hello,\nSpool\n']);
      expect(err).toMatch(/^Thread \w{26}\n$/);
      const threadId = err.trim().split(' ')[1]!;
      const more = await spool.run(['chat', '--thread', threadId], { input: 'More /artifact' });
      expect(more).toMatchObject({ code: 0, out: expect.stringContaining('You said: More') as string });
      expect(more.err).toMatch(new RegExp(`^Thread ${threadId}\nFile echo.txt: spool file download \\w{26}\n$`));
    });

    test('rejects tool calls that need approval, and allows them with --yes', async () => {
      const input = 'Note /confirm 2';
      const rejected = await spool.run(['chat', 'echo'], { input });
      expect(rejected.code).toBe(0);
      expect(rejected.out).toContain('send_note (refused)');
      expect(rejected.err).toContain('Rejected: send_note {"note":"Note","number":1} (--yes allows all calls)');
      const allowed = await spool.run(['chat', 'echo', '--yes'], { input });
      expect(allowed.code).toBe(0);
      expect(allowed.out).toContain('Note 2 was sent.');
      expect(allowed.err).toContain('Allowed: send_note');
    });

    test('says why an answer failed, and exits with 1', async () => {
      const { code, out, err } = await spool.run(['chat'], { input: '/fail' });
      expect([code, out]).toEqual([1, '']);
      expect(err).toMatch(/^Thread \w{26}\n.+\n$/);
    });

    test('Ctrl+C stops the answer and exits with 130', async () => {
      const running = spool.run(['chat'], { input: ENDLESS, onError: (err, stop) => err.includes('Thread') && stop() });
      expect(await running).toMatchObject({ code: 130, out: '', err: expect.stringMatching(/Stopped\.\n$/) as string });
    });

    test.each([
      [['--json'], 'chat does not support --json'],
      [['--local'], 'run it without --local'],
      [['--continue', '--thread', '01JD0000000000000000000000'], 'cannot be used together'],
      [[], 'Standard input has no message.'],
    ])('refuses %j', async (options, told) => {
      const { code, out, err } = await spool.run(['chat', ...options]);
      expect([code, out, err]).toEqual([2, '', expect.stringContaining(told)]);
    });
  });

  describeOnTerminal('on a terminal', () => {
    const main = resolve('dist/apps/cli/main.js');
    let open: Terminal[] = [];

    const chat = (...args: string[]): Terminal => {
      const terminal = new Terminal([process.execPath, main, 'chat', ...args], env);
      open.push(terminal);
      return terminal;
    };

    test('escapes control characters also of a message from a pipe', async () => {
      const line = `printf "\\033]0;x\\007Hi" | "${process.execPath}" "${main}" chat`;
      const terminal = new Terminal(['sh', '-c', line], env);
      open.push(terminal);
      await terminal.waitFor('You said: \\u001b]0;x\\u0007Hi');
    });

    afterEach(() => {
      for (const terminal of open) terminal.kill();
      open = [];
    });

    test('streams answers, asks before tool calls, and continues with --continue', async () => {
      const terminal = chat('echo');
      await terminal.enter('Hi /think 10ms');
      const answer = await terminal.waitFor('You said: Hi');
      expect(answer).toContain('Thought 5 of 5.');
      expect(terminal.raw).toMatch(/\u001b\[2mThought/);
      await terminal.enter('Note /confirm');
      const asked = await terminal.waitFor('Allow send_note? [y/n] ');
      expect(asked).toContain('needs your approval: {"note":"Note","number":1}');
      terminal.type('maybe\r');
      await terminal.waitFor('Answer y or n');
      await terminal.enter('y', 'Allow send_note? [y/n] ');
      await terminal.waitFor('] allowed');
      await terminal.waitFor('completed: Note 1 was sent.');
      await terminal.enter('Again /confirm');
      await terminal.enter('n', 'Allow send_note? [y/n] ');
      await terminal.waitFor('] rejected');
      await terminal.enter(CTRL_D);
      await terminal.waitFor('To continue: spool chat --thread ');
      expect(await terminal.exited).toBe(0);

      const later = chat('echo', '--continue');
      expect(await later.waitFor('] rejected')).toMatch(/> Hi \/think[^]+You said: Hi\n/);
      await later.enter('/quit');
      expect(await later.exited).toBe(0);
    });

    test('allows every call with --yes, and sends messages that were typed during an answer after it', async () => {
      const terminal = chat('echo', '--yes');
      await terminal.enter('Slow /confirm 2 /pause 50ms /pieces 20');
      await terminal.waitFor('Note 2 was sent.');
      await terminal.waitFor('You said: Slow');
      terminal.type('Queued\rBegun');
      await terminal.waitFor(' 20\n> Queued\n');
      await terminal.waitFor('You said: Queued\n> Begun');
      terminal.type('\r');
      await terminal.waitFor('You said: Begun');
    });

    test('attaches files, and saves files of an answer without overwriting others', async () => {
      await writeFile(join(folder, 'a.txt'), 'attached');
      const terminal = chat('echo');
      await terminal.enter(`/file ${folder}/none.txt`);
      await terminal.waitFor('cannot be read: ENOENT');
      await terminal.enter(`/file ${folder}/a.txt`);
      await terminal.waitFor('Attached to the next message: a.txt');
      await terminal.enter('Written /artifact');
      await terminal.waitFor('[attached] a.txt');
      await terminal.waitFor('[file] echo.txt (/save echo.txt)');
      const copy = join(folder, 'copy.txt');
      await terminal.enter(`/save echo.txt ${copy}`);
      await terminal.waitFor('Saved');
      expect(await readFile(copy, 'utf8')).toBe('Written');
      await terminal.enter(`/save a.txt ${copy}`);
      await terminal.waitFor('already exists');
      expect(await readFile(copy, 'utf8')).toBe('Written');
    });

    test('stops with /stop and Ctrl+C, retries, and says that a Run continues', async () => {
      const terminal = chat('echo');
      await terminal.enter(ENDLESS);
      await terminal.waitFor(' 3');
      terminal.type('/stop\r');
      await terminal.waitFor('Stopped.');
      await terminal.enter('/retry');
      await terminal.waitFor(' 3');
      terminal.type(CTRL_C);
      await terminal.waitFor('Stopped.');
      await terminal.enter('/retry');
      await terminal.waitFor(' 3');
      terminal.type(CTRL_D);
      await terminal.waitFor('The Run continues.');
      expect(await terminal.exited).toBe(0);
      const again = chat('echo', '--continue');
      await again.waitFor(' 5');
      again.type(CTRL_C);
      await again.waitFor('Stopped.');
      await again.enter(CTRL_C);
      expect(await again.exited).toBe(0);
    });

    test('follows the Thread when another client decides first, or stops the Run', async () => {
      const terminal = chat('echo');
      await terminal.enter('First /confirm 2');
      await terminal.waitFor('[y/n] ');
      type Waiting = { threadId: string; requestId: string; runId: string };
      const waiting = await spool.json<Waiting[]>('confirmation', 'list');
      const [{ threadId, requestId, runId }] = waiting as [Waiting];
      // Typed for the first request, so it must not count for the second one.
      terminal.type('y');
      await spool.run(['confirmation', 'answer', threadId, requestId, 'reject', '--yes']);
      await terminal.waitFor('] rejected');
      await terminal.waitFor('[y/n] ');
      terminal.type('\r');
      await terminal.waitFor('Answer y or n');
      await spool.run(['run', 'cancel', runId, '--yes']);
      await terminal.waitFor('Stopped.');
      await terminal.enter('Next');
      await terminal.waitFor('You said: Next');
    });

    test('asks which Agent, or takes its name; without a terminal it lists them', async () => {
      const guide = await addAgent(system, {
        name: 'guide',
        harness: { name: 'guide' },
        limits: { providerRetryMs: 0 },
      });
      const { code, err } = await spool.run(['chat'], { input: 'Hi' });
      expect([code, err]).toEqual([2, expect.stringContaining(`${guide}  guide (Testers)`)]);
      const terminal = chat();
      await terminal.waitFor('1  guide');
      terminal.type('1\r');
      await terminal.enter('error');
      await terminal.waitFor('Error: ');
      await terminal.enter('/retry');
      await terminal.waitFor('The retry worked.');
      await terminal.enter('/new');
      await terminal.waitFor('New chat.');
      await terminal.enter('/nothing');
      await terminal.waitFor('Unknown command /nothing');
    });
  });
});
