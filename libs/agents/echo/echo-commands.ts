/** What the echo agent does on a slash word in the message. docs/echo.md lists the same, kept equal by a test. */
export interface EchoCommand {
  word: string;
  /** What may follow the word; anything else belongs to the message. */
  argument: RegExp | null;
  example: string;
  does: string;
}

const NUMBER = /^\d{1,6}$/;
const DURATION = /^\d{1,6}(ms|s)?$/;

export const ECHO_COMMANDS = [
  {
    word: '/pause',
    argument: DURATION,
    example: '/pause 50',
    does: 'Pauses this many milliseconds between two deltas of the answer, instead of the agent’s `pauseMs`.',
  },
  {
    word: '/pieces',
    argument: NUMBER,
    example: '/pieces 200',
    does: 'Adds the numbers 1 to 200 to the answer, each as one delta.',
  },
  {
    word: '/think',
    argument: DURATION,
    example: '/think 500ms',
    does: 'First sends five deltas of thinking over that time.',
  },
  {
    word: '/tool',
    argument: null,
    example: '/tool',
    does: 'Calls `clock`, an idempotent tool: it returns the time at which the Run was requested.',
  },
  {
    word: '/confirm',
    argument: NUMBER,
    example: '/confirm 3',
    does: 'Calls `send_note` this many times in parallel (default 1): a tool that needs permission and is not idempotent.',
  },
  {
    word: '/artifact',
    argument: null,
    example: '/artifact',
    does: 'Calls `write_file`: an artifact `echo.txt` with the message’s text.',
  },
  {
    word: '/cite',
    argument: null,
    example: '/cite',
    does: 'Adds provider-private citation markup to the answer, split over several deltas.',
  },
  {
    word: '/fail',
    argument: null,
    example: '/fail',
    does: 'Fails with `provider_rejected`, which is not retryable.',
  },
  {
    word: '/fail-retryable',
    argument: null,
    example: '/fail-retryable',
    does: 'Fails with `provider_unavailable` in every attempt, until the agent’s `limits.providerRetryMs` is over.',
  },
  {
    word: '/flaky',
    argument: NUMBER,
    example: '/flaky 2',
    does: 'Fails with `provider_unavailable` in the first 2 attempts (default 1), then works.',
  },
  {
    word: '/crash',
    argument: /^always$/,
    example: '/crash',
    does: 'Kills the worker process after the last delta of the answer, in the Run’s first attempt. `/crash always`: in every one.',
  },
] as const satisfies EchoCommand[];

export type EchoWord = (typeof ECHO_COMMANDS)[number]['word'];

export interface EchoRequest {
  /** The message without the commands; the whole message when nothing else is in it. */
  text: string;
  /** The commands in it, with their argument or null. */
  commands: ReadonlyMap<EchoWord, string | null>;
}

/** Reads a message. Words that are no command, `disabled` ones too, are text. */
export function parseEchoMessage(message: string, disabled: readonly EchoWord[] = []): EchoRequest {
  const commands = new Map<EchoWord, string | null>();
  const table = new Map<string, EchoCommand & { word: EchoWord }>(
    ECHO_COMMANDS.map((command) => [command.word, command]),
  );
  for (const word of disabled) table.delete(word);
  // Words at even places, the white space behind each at the odd ones.
  const tokens = message.split(/(\s+)/);
  let text = '';
  for (let i = 0; i < tokens.length; i += 2) {
    const command = table.get(tokens[i] ?? '');
    if (command === undefined) {
      text += `${tokens[i]}${tokens[i + 1] ?? ''}`;
      continue;
    }
    const next = tokens[i + 2] ?? '';
    const hasArgument = command.argument?.test(next) ?? false;
    commands.set(command.word, hasArgument ? next : null);
    if (hasArgument) i += 2;
  }
  if (commands.size === 0) return { text: message, commands };
  return { text: text.trim() || message, commands };
}

/** `500`, `500ms` and `2s` in milliseconds; `fallback` for null. */
export function echoDurationMs(argument: string | null | undefined, fallback: number): number {
  if (argument === null || argument === undefined) return fallback;
  return parseInt(argument, 10) * (argument.endsWith('s') && !argument.endsWith('ms') ? 1_000 : 1);
}
