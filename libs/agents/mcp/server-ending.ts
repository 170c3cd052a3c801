import { stripVTControlCharacters } from 'node:util';
import { ErrorCode, McpError } from '@modelcontextprotocol/sdk/types.js';
import { hideSecrets } from './hide-secrets.ts';

/** The known state of a tool server's process that did not answer. */
export interface Ending {
  /** Null while it runs. */
  exit: { status: number | null; signal: string | null } | null;
  /** The limit that its output exceeded, so that the worker ended it. */
  broken: Error | null;
  /** The last lines of its standard error, without those of stack traces. */
  lastLines: readonly string[];
}

/** The program of a tool server ended, or did not answer in time. Its message has no secrets. */
class ServerEnded extends Error {
  override name = 'ServerEnded';

  constructor(
    message: string,
    /** Null if the program still runs. */
    readonly exit: Ending['exit'],
    cause: unknown,
  ) {
    super(message, { cause });
  }
}

const MAX_LINES = 3;
const MAX_LINE = 300;
/** Lines of a stack trace, and those that Node writes around one. */
const SAYS_NOTHING = /^\s+at\s|^[\s{}[\]()^~,]*$|^Node\.js v[\d.]+$/;

/** Keeps the last lines of a standard error, without those of stack traces. */
export class LastLines {
  private kept: string[] = [];

  take(line: string): void {
    if (SAYS_NOTHING.test(line)) return;
    this.kept = [...this.kept, line].slice(-MAX_LINES);
  }

  /** Must be called if later lines are not read, because the kept ones are then not the last. */
  forget(): void {
    this.kept = [];
  }

  get lines(): readonly string[] {
    return this.kept;
  }
}

/**
 * Returns the error of a server that could not be reached, with the exit and the last lines of its process as the reason. Returns an
 * error that has another reason unchanged.
 */
export function explainEnd(error: unknown, { exit, broken, lastLines }: Ending, secrets: readonly string[]): unknown {
  if (!(error instanceof McpError)) return error;
  if (error.code !== Number(ErrorCode.ConnectionClosed) && error.code !== Number(ErrorCode.RequestTimeout))
    return error;
  const shown = lastLines.map((line) => shownLine(line, secrets)).join(' | ');
  const parts = [
    `${how(exit, broken)}.`,
    ...(broken === null ? [] : [hideSecrets(broken.message, secrets)]),
    ...(shown === '' ? [] : [`Its last lines on standard error: ${shown}`]),
  ];
  return new ServerEnded(parts.join(' '), exit, error);
}

function how(exit: Ending['exit'], broken: Error | null): string {
  if (broken !== null) return 'The program was ended before it answered';
  if (exit === null) return 'The program did not answer in time';
  const { status, signal } = exit;
  return `The program ended with ${signal === null ? `exit status ${status}` : `signal ${signal}`} before it answered`;
}

/** Hides secrets before it shortens the line, because a part of a secret would not be recognized. */
function shownLine(line: string, secrets: readonly string[]): string {
  const hidden = hideSecrets(stripVTControlCharacters(line), secrets);
  return hidden
    .replaceAll(/[\p{Cc}\p{Zl}\p{Zp}]/gu, ' ')
    .trim()
    .slice(0, MAX_LINE);
}
