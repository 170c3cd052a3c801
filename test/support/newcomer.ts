import { execFile } from 'node:child_process';
import { readFile, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { isNight } from '#testing';

const run = promisify(execFile);
const README = join(import.meta.dirname, '../../README.md');

/** Returns the commands of the first block below a heading of README.md. */
async function commandsBelow(heading: string): Promise<string> {
  const [, section = ''] = (await readFile(README, 'utf8')).split(`\n## ${heading}\n`);
  return /^```sh\n([^`]+)^```/m.exec(section)?.[1] ?? '';
}

/** Runs the README's commands for a newcomer, beside a running `npm start` whose data is in `.data` of that directory. */
export async function expectFirstRun(directory: string): Promise<void> {
  const script = [await commandsBelow('First Run'), 'echo @@', await commandsBelow('Say more')].join('\n');
  const { stdout } = await run('/bin/sh', ['-ec', script], { cwd: directory, timeout: 60_000 });
  const [first = '', more = ''] = stdout.split('@@\n');
  expect(first).toContain('event: thread.event');
  expect(first).toContain('"type":"run.completed"');
  expect(first).toMatch(/"finalOutput":\{"text":"You said: Hello, Spool"/);
  expect(more).toContain('"type":"tool.confirmation.required"');
  expect(more).toMatch(/"type":"tool\.use\.completed"[^]*"type":"run\.completed"[^]*event: thread\.idle/);
}

/** What `npx spool` needs to be found in another directory, and the README's example. */
const OF_THE_CHECKOUT = ['package.json', 'apps', 'dist', 'examples', 'node_modules'];

/** npm takes longer to find the program than the program takes to run, so only the night has it found each time. */
const NPX = isNight
  ? ''
  : `npx() {
      if [ -z "\${found:-}" ]; then found=yes; command npx "$@"; else shift; node '${join(README, '../apps/cli/bin/spool.mjs')}' "$@"; fi
    }
    `;

/** Types the README's lines for operators, likewise. */
export async function expectOperatorsWalk(directory: string): Promise<void> {
  const script = /^npx spool org create[^`]+/m.exec(await readFile(README, 'utf8'))?.[0] ?? '';
  for (const name of OF_THE_CHECKOUT) await symlink(join(README, '..', name), join(directory, name));
  const { PATH, HOME } = process.env;
  const { stdout } = await run('/bin/sh', ['-euc', `${NPX}${script}`], { cwd: directory, env: { PATH, HOME } });
  // What the Run says, which Run that was, and what was done for it, newest first.
  expect(stdout).toContain('Where is my order?');
  expect(stdout).toMatch(/completed +user_prompt/);
  const audit = stdout.slice(stdout.indexOf('token.minted') - 1);
  expect([...audit.matchAll(/ (\w+\.\w+) /g)].slice(0, 7).map(([, action]) => action)).toEqual([
    'token.minted',
    'agent.published',
    'agent.version_added',
    'agent.created',
    ...['member.added', 'person.created', 'organization.created'],
  ]);
}

/** Where the embedded PostgreSQL keeps its data, when this is not below DATA_DIR but elsewhere (as root), by its log. */
export function embeddedDataDir(output: string): string | null {
  return /PostgreSQL keeps its data in ([^,"]+),/.exec(output)?.[1] ?? null;
}
