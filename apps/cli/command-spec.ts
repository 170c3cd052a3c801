import type { Command } from 'commander';
import { Option } from 'commander';
import type { Options } from './options.ts';
import type { Session } from './session.ts';

export interface OptionSpec {
  /** As commander writes them: `--org <org>`. */
  flags: string;
  description: string;
  choices?: readonly string[];
  /** May be given several times; the values come as an array. */
  many?: true;
  required?: true;
  /** Throws InvalidArgumentError. */
  parse?: (text: string) => unknown;
}

/** A command, as data: what `--help` says of it, and what it does. */
export interface CommandSpec<Args extends string[] = string[], Given extends Options = Options> {
  /** Name and arguments as commander writes them: `create <name>`. */
  usage: string;
  description: string;
  options?: readonly OptionSpec[];
  /** What an argument may be, by its name. */
  argumentChoices?: Record<string, readonly string[]>;
  /** Without `spool`; the second says what it is good for, where that is not plain. */
  examples: readonly (readonly [line: string, what?: string])[];
  /** What a person is asked before it is done; null: nothing is lost by it. Commands that have this have `--yes`. */
  asks?(args: Args, options: Given): string | null;
  run(session: Session, args: Args, options: Given): Promise<void>;
}

export interface Group {
  name: string;
  description: string;
  commands: readonly CommandSpec[];
}

export type Runner = (spec: CommandSpec, args: string[], options: Options) => Promise<void>;

export const YES: OptionSpec = { flags: '-y, --yes', description: 'do not ask for confirmation' };

export function addGroup(program: Command, { name, description, commands }: Group, run: Runner): void {
  const group = program.command(name).description(description);
  const examples = commands.map((spec) => spec.examples[0]!);
  group.addHelpText('after', showExamples(examples));
  for (const spec of commands) addCommand(group, spec, run);
}

export function addCommand(parent: Command, spec: CommandSpec, run: Runner): Command {
  const command = parent.command(spec.usage).description(spec.description);
  for (const option of spec.options ?? []) command.addOption(makeOption(option));
  if (spec.asks) command.addOption(makeOption(YES));
  for (const argument of command.registeredArguments) {
    const choices = spec.argumentChoices?.[argument.name()];
    if (choices) argument.choices(choices);
  }
  command.addHelpText('after', showExamples(spec.examples));
  return command.action(() => run(spec, command.args, command.optsWithGlobals()));
}

function makeOption({ flags, description, choices, many, required, parse }: OptionSpec): Option {
  const option = new Option(flags, description);
  if (choices) option.choices(choices);
  if (parse) option.argParser(parse);
  if (many) option.argParser((value, before: string[] | undefined) => [...(before ?? []), value]);
  if (required) option.makeOptionMandatory();
  return option;
}

export function showExamples(examples: CommandSpec['examples']): string {
  const width = Math.max(...examples.filter(([, what]) => what).map(([line]) => line.length), 0);
  const lines = examples.map(([line, what]) => `  $ spool ${what ? `${line.padEnd(width)}   ${what}` : line}`);
  return ['', 'Examples:', ...lines].join('\n');
}
