import { beginningOf, storableText } from './text.ts';

/**
 * Why an attempt of a Run or a tool call failed, for operators. Callers never see it (docs/run-errors.md). Texts are short and
 * have no known secret. Fields that are not known are omitted.
 */
export interface FailureCause {
  /**
   * The part that failed. `worker`: the worker was lost, or the failure is an error of Spool in this worker. `run`: a limit or a rule
   * of the Run, named by the code of its error.
   */
  source: 'provider' | 'tool_server' | 'worker' | 'run';
  /** The host of the provider, the name of the tool server, the id of the worker, or the code of the error. */
  name: string;
  /** The HTTP status of the response. */
  status?: number | undefined;
  /** The kind of error in the words of the provider, or the name of the error. */
  type?: string | undefined;
  /** The code of the provider, of JSON-RPC, or of the network, such as `ECONNREFUSED`. */
  code?: string | undefined;
  /** The exit status of the tool server's program. */
  exitCode?: number | undefined;
  /** The signal that ended the tool server's program. */
  signal?: string | undefined;
  /** The id by which the provider finds the request. */
  requestId?: string | undefined;
  /** The message of the provider, the tool server or the error. */
  message?: string | undefined;
  /** How long the response was waited for, milliseconds. */
  waitedMs?: number | undefined;
  /** The last known step of a lost worker. */
  step?: string | undefined;
}

const MAX_MESSAGE = 500;
const MAX_WORD = 100;

/** Returns a message that fits into a cause. */
export const causeMessage = (text: string): string => beginningOf(storableText(text), MAX_MESSAGE);

/** Returns a name, type, code or id that fits into a cause. */
export const causeWord = (text: string): string => beginningOf(storableText(text), MAX_WORD);

const PROVIDER_WORDS: Record<string, string> = {
  ProviderSilent: 'sent nothing in time',
  StreamCut: 'the response ended early',
  UnreadableAnswer: 'the response is unreadable',
  AddressRefused: 'the private address is not allowed',
  AnswerTooLarge: 'the response is too large',
  SecretMissing: 'the credential is missing',
  NotAllowed: 'the credential is not allowed',
};

const TOOL_WORDS: Record<string, string> = {
  lost: 'connection lost',
  timeout: 'timed out',
  too_large: 'result too large',
  no_room: 'no memory in the worker',
  over_limit: 'exceeded its memory or CPU limit',
  refused: 'refused the call',
  invalid: 'invalid response',
};

/** Returns the cause in a few words, without its message. Causes with the same words are counted together. */
export function summarizeCause(cause: FailureCause): string {
  const { source, name, status, type, code, exitCode, signal } = cause;
  switch (source) {
    case 'provider':
      return status === undefined
        ? `provider ${name}: ${code ?? PROVIDER_WORDS[type ?? ''] ?? type ?? 'no response'}`
        : `HTTP ${status} from ${name}`;
    case 'tool_server': {
      const known = [
        signal && `signal ${signal}`,
        exitCode !== undefined && `exit status ${exitCode}`,
        status !== undefined && `HTTP ${status}`,
        code && (/^-?\d+$/.test(code) ? `JSON-RPC error ${code}` : code),
        type && (TOOL_WORDS[type] ?? type),
      ];
      return `tool server ${name}: ${known.find(Boolean) ?? 'no response'}`;
    }
    case 'run':
      return name;
    case 'worker':
      return type === undefined ? 'the worker was lost' : `internal error ${type} in the worker`;
  }
}
