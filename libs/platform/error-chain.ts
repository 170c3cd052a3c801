import { types } from 'node:util';

const MAX_ERRORS = 10;

/** Returns the error and its causes, the outermost first, at most 10. Empty if the value is no error. */
export function errorChain(error: unknown): Error[] {
  const chain: Error[] = [];
  // Not `instanceof`, because under Jest the errors of Node have another class Error.
  for (let next = error; types.isNativeError(next) && chain.length < MAX_ERRORS; next = next.cause) chain.push(next);
  return chain;
}

/** Returns the different messages of the error and its causes in one line. */
export function chainedMessage(error: unknown): string {
  const messages = errorChain(error).map(({ message }) => message);
  return [...new Set(messages)].filter((message) => message !== '').join(' ');
}
