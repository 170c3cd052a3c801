import { causeMessage, causeWord, type FailureCause } from '#domain';
import { chainedMessage, errorChain } from '#platform';
import type { Ending } from './server-ending.ts';

/** Fields of the errors of this folder, of the SDK and of Node. The errors may be copies without secrets. */
type KnownError = Error & { code?: unknown; exit?: Ending['exit'] };

/**
 * Returns what is stored about the failure of a tool server: the exit of its program, the HTTP status or the code of JSON-RPC or of
 * the network, and the messages.
 *
 * @param error has no secrets
 */
export function serverReport(serverName: string, error: unknown, type?: string): FailureCause {
  const chain: KnownError[] = errorChain(error);
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
    message: causeMessage(chainedMessage(error)) || undefined,
  };
}

const isStatus = (code: unknown): code is number => typeof code === 'number' && code >= 100 && code <= 599;

const causeCode = (code: unknown): string | undefined =>
  typeof code === 'string' || typeof code === 'number' ? causeWord(`${code}`) : undefined;
