import { InvalidArgumentError } from 'commander';

/** Parses a limit of a token; the service checks the maximum. Throws InvalidArgumentError. */
export function parseLimit(text: string): number {
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text);
  throw new InvalidArgumentError('It must be a whole number, at least 1.');
}

/** The values of a limit option; `default` means that of the token's kind. */
export type GivenLimit = number | 'default';

/** Parses a limit like `parseLimit`, or `default`. */
export const parseNewLimit = (text: string): GivenLimit => (text === 'default' ? text : parseLimit(text));
