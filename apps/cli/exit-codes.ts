/** What `spool` ends with: programs that call it go by these, and `spool --help` lists them. */
export const EXIT = { done: 0, failed: 1, usage: 2, notFound: 3, notAllowed: 4, away: 5, conflict: 6 } as const;

/** What a shell shows of a program that Ctrl-C has ended. */
export const EXIT_INTERRUPTED = 130;

export type ExitName = keyof typeof EXIT;

export const EXIT_MEANINGS: Record<ExitName, string> = {
  done: 'done',
  failed: 'the command failed, or it found a problem',
  usage: 'wrong usage or invalid input; nothing was changed',
  notFound: 'not found',
  notAllowed: 'not allowed: the token is missing, invalid or not an operator token',
  away: 'the service or the database does not answer',
  conflict: 'conflict: the current state does not allow it',
};

/** A command cannot go on; `message` is for people and holds no secret. */
export class CommandError extends Error {
  override name = 'CommandError';

  constructor(
    readonly exit: ExitName,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

const EXIT_OF_CODE: Record<string, ExitName> = {
  invalid_request: 'usage',
  invalid_json: 'usage',
  unauthenticated: 'notAllowed',
  forbidden: 'notAllowed',
  not_found: 'notFound',
  conflict: 'conflict',
  rate_limited: 'away',
};

export const exitOfCode = (code: string): ExitName => EXIT_OF_CODE[code] ?? 'failed';
