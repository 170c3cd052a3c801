import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Command } from 'commander';
import { addCommand, addGroup, showExamples, type CommandSpec, type Group, type Runner } from './command-spec.ts';
import { EXIT, EXIT_INTERRUPTED, EXIT_MEANINGS, type ExitName } from './exit-codes.ts';
import { agents } from './groups/agents.ts';
import { bulk } from './groups/bulk.ts';
import { projections, verify } from './groups/checks.ts';
import { chat } from './groups/chat.ts';
import { confirmations } from './groups/confirmations.ts';
import { files } from './groups/files.ts';
import { audit, doctor, migrate } from './groups/installation.ts';
import { organizations } from './groups/organizations.ts';
import { overview } from './groups/overview.ts';
import { people } from './groups/people.ts';
import { queue } from './groups/queue.ts';
import { runs } from './groups/runs.ts';
import { threads } from './groups/threads.ts';
import { tokens } from './groups/tokens.ts';
import { maskTokens } from './secrets.ts';
import type { Streams } from './session.ts';

export const GROUPS: readonly Group[] = [
  ...[organizations, people, tokens, agents],
  ...[threads, files, runs, bulk, confirmations, queue, projections],
];
export const SINGLE: readonly CommandSpec[] = [overview, chat, verify, doctor, audit, migrate];

/** `spool`: what operators type. What is thrown for wrong usage is commander’s. */
export function createProgram({ out, err }: Streams, run: Runner): Command {
  const program = new Command('spool')
    .description('Operates a Spool installation.')
    .version(readVersion(), '--version', 'print the version')
    .option('--json', 'print JSON, errors included: one document, or one line per entry for thread tail')
    .option('--local', 'use the database directly, without the service')
    .exitOverride()
    .configureHelp({ showGlobalOptions: true })
    .configureOutput({
      writeOut: (text) => void out.write(text),
      writeErr: (text) => void err.write(maskTokens(text)),
      getErrHasColors: () => false,
    })
    .showHelpAfterError('(use --help for usage and examples)')
    .addHelpText('after', HELP);
  for (const group of GROUPS) addGroup(program, group, run);
  for (const spec of SINGLE) addCommand(program, spec, run);
  return program;
}

const exitCodes = Object.keys(EXIT).map((name) => `  ${EXIT[name as ExitName]}    ${EXIT_MEANINGS[name as ExitName]}`);

const HELP = `${showExamples([
  ['doctor', 'next to a running npm start'],
  ['overview', 'current problems and load'],
  ['org create Acme'],
  ['user create "Jo Doe" --org Acme'],
  ['agent apply -f agents/ --org Acme --publish'],
  ['token create --user "Jo Doe" --name laptop --expires 90d'],
  ['chat guide', 'talk with an Agent'],
  ['thread list --org Acme --status RUNNING'],
  ['verify --local', 'on DATABASE_URL, without the service'],
])}

Name an organization, user, Agent or token by its id or its exact name.

Environment:
  SPOOL_URL          URL of the service, such as https://spool.example.com
  SPOOL_TOKEN        operator token; or SPOOL_TOKEN_FILE, a file that contains it
  DATABASE_URL       URL of the database, for --local and migrate
  DATA_DIR           if none of these is set: data directory of a running npm start, default .data
  NO_COLOR           disables colours

Exit codes:
${exitCodes.join('\n')}
  ${EXIT_INTERRUPTED}  stopped by Ctrl-C`;

/** Of the package, wherever this file has been built to. */
function readVersion(): string {
  for (let directory = import.meta.dirname; ; directory = dirname(directory)) {
    try {
      return (JSON.parse(readFileSync(join(directory, 'package.json'), 'utf8')) as { version: string }).version;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT' || directory === dirname(directory)) throw error;
    }
  }
}
