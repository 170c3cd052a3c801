import { types } from 'node:util';
import { BOUNDS } from '#domain';
import { pauseIfLong } from '#platform';

/** Shorter secrets would match ordinary text, and the hidden places would reveal them. */
const MIN_LENGTH = 6;

/**
 * Returns the texts to hide for secret values of a manifest. Includes the part after `Bearer `, the form that JSON writes, because
 * servers repeat their variables and headers as JSON, and each line alone, as logs have it.
 */
export function secretTexts(values: readonly string[]): readonly string[] {
  const texts = values
    .flatMap((value) => [value, value.replace(/^[\w-]+ +/, ''), ...value.split(/\r?\n/)])
    .flatMap((text) => [text, JSON.stringify(text).slice(1, -1)]);
  // Longer texts first, because one may begin with another.
  return [...new Set(texts)].filter((text) => text.length >= MIN_LENGTH).sort((a, b) => b.length - a.length);
}

/** Returns the JSON value with `***` for each secret in its texts. */
export function hideSecrets<Value>(value: Value, secrets: readonly string[]): Value;
export function hideSecrets(value: unknown, secrets: readonly string[]): unknown {
  if (secrets.length === 0) return value;
  if (typeof value === 'string') {
    // No secret is shorter.
    if (value.length < MIN_LENGTH) return value;
    return secrets.reduce((text, secret) => (text.includes(secret) ? text.replaceAll(secret, '***') : text), value);
  }
  if (Array.isArray(value)) return value.map((entry: unknown) => hideSecrets(entry, secrets));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, entry]) => [hideSecrets(key, secrets), hideSecrets(entry, secrets)]),
  );
}

const LONG_TEXT = BOUNDS.toolCalls.searchedTogether.value;

/** Does the same as `hideSecrets`, in slices, because many secrets in a large value take long. Keeps at most 2 MiB of a text. */
export async function hideInSlices<Value>(value: Value, secrets: readonly string[]): Promise<Value>;
export async function hideInSlices(value: unknown, secrets: readonly string[]): Promise<unknown> {
  if (secrets.length === 0) return value;
  await pauseIfLong();
  if (typeof value === 'string' && value.length > LONG_TEXT) return hideInText(value, secrets);
  if (typeof value !== 'object' || value === null) return hideSecrets(value, secrets);
  if (Array.isArray(value)) {
    const shown: unknown[] = [];
    for (const entry of value) shown.push(await hideInSlices(entry as unknown, secrets));
    return shown;
  }
  const shown: [string, unknown][] = [];
  for (const [key, entry] of Object.entries(value))
    shown.push([await hideInSlices(key, secrets), await hideInSlices(entry as unknown, secrets)]);
  return Object.fromEntries(shown);
}

/** The part of a text that is searched, if only its beginning is kept. UTF-16 units. */
const LOOKED_THROUGH = BOUNDS.toolCalls.searched.value;

/** Returns the beginning of a text with `***` for each secret, in slices. Returns a little less of a longer text. */
export async function hideInText(text: string, secrets: readonly string[]): Promise<string> {
  if (secrets.length === 0) return text;
  let shown = text.slice(0, LOOKED_THROUGH);
  for (const secret of secrets) {
    shown = shown.replaceAll(secret, '***');
    await pauseIfLong();
  }
  return text.length <= LOOKED_THROUGH ? shown : withoutEnd(shown, secrets);
}

/** Removes the end of a cut text, because it may be a part of a secret. */
function withoutEnd(text: string, [longest = '']: readonly string[]): string {
  return text.slice(0, Math.max(0, text.length - longest.length));
}

const MAX_MESSAGE = 2_048;
const LOOKED_THROUGH_IN_ERROR = BOUNDS.toolCalls.searchedError.value;

function hideInMessage(message: string, secrets: readonly string[]): string {
  const hidden = hideSecrets(message.slice(0, LOOKED_THROUGH_IN_ERROR), secrets);
  const shown = message.length > LOOKED_THROUGH_IN_ERROR ? withoutEnd(hidden, secrets) : hidden;
  return shown.slice(0, MAX_MESSAGE);
}

/** Returns a copy of the error without secrets, because servers repeat what they were sent. */
export function hideInError(error: unknown, secrets: readonly string[], depth = 0): Error {
  // Its message would list each part that does not fit, which may be tens of megabytes.
  if (hasIssues(error)) return new Error('The server’s answer does not match the protocol.');
  const { name, message, code, exit, cause } = (
    types.isNativeError(error) ? error : new Error(String(error))
  ) as Error & { code?: unknown; exit?: unknown };
  const more = cause === undefined || depth > 4 ? {} : { cause: hideInError(cause, secrets, depth + 1) };
  return Object.assign(new Error(hideInMessage(message, secrets), more), { name, code, ...(exit ? { exit } : {}) });
}

/** Returns whether it is the error of a schema about a value that does not fit. */
function hasIssues(error: unknown): boolean {
  return Array.isArray((error as { issues?: unknown } | null | undefined)?.issues);
}
