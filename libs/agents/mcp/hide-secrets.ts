import { types } from 'node:util';

/** Shorter ones would be found by chance, and what is hidden then would tell them. */
const MIN_LENGTH = 6;

/**
 * The texts to be hidden for some values of a manifest: of `Bearer …` also what follows, which is the secret itself; each
 * as JSON writes it, for servers repeat their variables and headers as JSON; and each line alone, as a log has it.
 */
export function secretTexts(values: readonly string[]): readonly string[] {
  const texts = values
    .flatMap((value) => [value, value.replace(/^[\w-]+ +/, ''), ...value.split(/\r?\n/)])
    .flatMap((text) => [text, JSON.stringify(text).slice(1, -1)]);
  // The longer first: one may begin with another.
  return [...new Set(texts)].filter((text) => text.length >= MIN_LENGTH).sort((a, b) => b.length - a.length);
}

/** The same JSON value with `***` for each secret in its texts. */
export function hideSecrets<Value>(value: Value, secrets: readonly string[]): Value;
export function hideSecrets(value: unknown, secrets: readonly string[]): unknown {
  if (secrets.length === 0) return value;
  if (typeof value === 'string') return secrets.reduce((text, secret) => text.replaceAll(secret, '***'), value);
  if (Array.isArray(value)) return value.map((entry: unknown) => hideSecrets(entry, secrets));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, entry]) => [hideSecrets(key, secrets), hideSecrets(entry, secrets)]),
  );
}

/** An error as the log may have it: servers repeat what they were sent. */
export function hideInError(error: unknown, secrets: readonly string[], depth = 0): Error {
  const { name, message, code, cause } = (types.isNativeError(error) ? error : new Error(String(error))) as Error & {
    code?: unknown;
  };
  const more = cause === undefined || depth > 4 ? {} : { cause: hideInError(cause, secrets, depth + 1) };
  return Object.assign(new Error(hideSecrets(message, secrets).slice(0, 2_048), more), { name, code });
}
