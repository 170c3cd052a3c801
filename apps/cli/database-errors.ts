import { ConfigError, StartError, throwStartupError } from '#platform';
import { CommandError } from './exit-codes.ts';

/** What a person can do something about as a CommandError; anything else as it is. `url` is not shown. */
export function asCommandError(error: unknown, url?: string): unknown {
  if (error instanceof ConfigError) return new CommandError('usage', error.message, { cause: error });
  if (error instanceof StartError) return new CommandError('away', error.message, { cause: error });
  if (url === undefined) return error;
  try {
    throwStartupError(error, url);
  } catch (readable) {
    return asCommandError(readable);
  }
}
