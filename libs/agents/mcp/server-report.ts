import { types } from 'node:util';
import { causeMessage, causeWord, type FailureCause } from '#domain';
import type { Ending } from './server-ending.ts';

const MAX_CAUSES = 10;

/** Fields of the errors of this folder, of the SDK and of Node. The errors may be copies without secrets. */
type KnownError = Error & { code?: unknown; exit?: Ending['exit'] };

/**
 * Returns what is stored about the failure of a tool server: the exit of its program, the HTTP status or the code of JSON-RPC or of
 * the network, and the messages.
 *
 * @param error has no secrets
 */
export function serverReport(serverName: string, error: unknown, type?: string): FailureCause {
  const chain: KnownError[] = [];
  for (let next = error; types.isNativeError(next) && chain.length < MAX_CAUSES; next = next.cause) chain.push(next);
  const exit = chain.find((each) => each.exit)?.exit;
  const status = chain.map(({ name, code }) => (name === 'McpError' ? null : code)).find(isStatus);
  const code = chain.map((each) => each.code).find((each) => typeof each === 'string');
  const jsonRpc = chain.find(({ name }) => name === 'McpError')?.code;
  return {
    source: 'tool_server',
    name: causeWord(serverName),
    type,
    exitCode: exit?.status ?? undefined,
    signal: exit?.signal ?? undefined,
    status,
    code: status === undefined ? causeCode(code ?? jsonRpc) : undefined,
    message: causeMessage([...new Set(chain.map(({ message }) => message))].join(' ')),
  };
}

const isStatus = (code: unknown): code is number => typeof code === 'number' && code > 0;

const causeCode = (code: unknown): string | undefined =>
  typeof code === 'string' || typeof code === 'number' ? causeWord(`${code}`) : undefined;
