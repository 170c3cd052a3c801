import { PassThrough } from 'node:stream';
import { CommanderError } from 'commander';
import type { AdminClient } from './admin-client.ts';
import type { CommandSpec } from './command-spec.ts';
import type { Options } from './options.ts';
import { CommandError, EXIT } from './exit-codes.ts';
import { openClient } from './open-client.ts';
import { createProgram } from './program.ts';
import { holdsToken, maskTokens } from './secrets.ts';
import { Session, type Streams } from './session.ts';
import { showControls } from './text.ts';

export interface Surroundings extends Streams {
  env: Record<string, string | undefined>;
  /** Instead of the service that `env` names. */
  client?: AdminClient;
}

/** Does what the arguments say, and answers the exit code. Never throws what a person can do something about. */
export async function runCli(args: readonly string[], surroundings: Surroundings): Promise<number> {
  let exitCode: number = EXIT.done;
  const isJson = args.includes('--json');
  const { out, err } = surroundings;
  // What commander says of wrong usage is for people; programs are told below.
  const said = isJson ? new PassThrough().resume() : err;
  const program = createProgram({ out, err: said }, async (spec, given, options) => {
    exitCode = await perform(spec, given, options, surroundings);
  });
  try {
    refuseTokens(args);
    await program.parseAsync(args, { from: 'user' });
    return exitCode;
  } catch (error) {
    // Help or the version.
    if (error instanceof CommanderError && error.exitCode === 0) return EXIT.done;
    const told = error instanceof CommanderError ? wrongUsage(error) : error;
    if (!(told instanceof CommandError)) throw error;
    // To people commander has said it already.
    if (isJson || told === error) err.write(`${tell(told, isJson)}\n`);
    return EXIT[told.exit];
  }
}

async function perform(
  spec: CommandSpec,
  args: string[],
  options: Options,
  { env, client, out, err }: Surroundings,
): Promise<number> {
  const note = (text: string): void => session.note(text);
  const open = async (): Promise<AdminClient> => client ?? openClient(env, options['local'] === true, note);
  const session = new Session({ options, openClient: open, out, err });
  try {
    const question = spec.asks?.(args, options) ?? null;
    if (question !== null) await session.confirm(question);
    await spec.run(session, args, options);
    return session.exitCode;
  } finally {
    await session.close();
  }
}

/** It would be in the list of processes and the shell's history, and by and by in somebody's log. */
function refuseTokens(args: readonly string[]): void {
  if (!args.some(holdsToken)) return;
  const advice = 'Other users of this machine can read it: rotate it';
  throw new CommandError(
    'usage',
    `A token was passed as an argument. ${advice} (spool token rotate), and use SPOOL_TOKEN_FILE.`,
  );
}

function wrongUsage({ code, message }: CommanderError): CommandError {
  const text =
    code === 'commander.help' ? 'No command given; --help lists the commands.' : message.replace(/^error: /, '');
  return new CommandError('usage', text);
}

function tell({ exit, message }: CommandError, json: boolean): string {
  const text = maskTokens(message);
  return json ? JSON.stringify({ error: { code: exit, message: text } }) : showControls(text);
}
