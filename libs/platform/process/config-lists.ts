import { isAbsolute, normalize } from 'node:path';
import { z } from 'zod';

/** A folder that stdio tool servers see. */
export interface ToolServerFolder {
  path: string;
  writable: boolean;
}

/** Names of variables that hold secrets of the service itself, besides its settings. */
const OWN_VARIABLE = /^(AWS_|OTEL_|PG[A-Z]|NODE_|SPOOL_|LD_|REDISCLI_)/;

/** Returns whether a variable belongs to the service, so that no manifest may name it. `settings`: the names of all settings. */
export function isOwnVariable(name: string, settings: readonly string[]): boolean {
  const upper = name.toUpperCase();
  return OWN_VARIABLE.test(upper) || settings.includes(upper) || settings.includes(upper.replace(/_FILE$/, ''));
}

const split = (text: string): string[] =>
  text
    .split(',')
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '');

const isPlainPath = (path: string): boolean => isAbsolute(path) && normalize(path) === path && !/[\0\n]/.test(path);

/** Parses names of variables, separated by commas. `*_API_KEY` stands for all names that end in `_API_KEY`. */
export const variableNames = (fallback: string) =>
  z
    .string()
    .default(fallback)
    .refine((text) => split(text).every((name) => /^(\*_[A-Za-z0-9_]+|[A-Za-z_][A-Za-z0-9_]*)$/.test(name)), {
      message: 'must be names of variables, or *_ and an ending, separated by commas',
    });

/** Returns whether a list of `variableNames` has the name. */
export function listsVariable(list: readonly string[], name: string): boolean {
  return list.some((entry) => (entry.startsWith('*') ? name.endsWith(entry.slice(1)) : name === entry));
}

/** Parses absolute paths, separated by commas. */
export const pathList = z
  .string()
  .refine((text) => split(text).every(isPlainPath), {
    message: 'must be absolute paths, separated by commas, without ..',
  })
  .optional();

/** Parses absolute paths, separated by commas. `:rw` after a path allows writing. */
export const folderList = z
  .string()
  .refine((text) => parseFolders(text).every(({ path }) => isPlainPath(path) && path !== '/'), {
    message: 'must be absolute paths, separated by commas, each with or without :rw; not /',
  })
  .optional();

/** A key of BROWSER_TOKEN_KEYS. */
export interface SigningKey {
  id: string;
  secret: Uint8Array;
}

/** HS256 needs a key of at least 32 bytes (RFC 7518, section 3.2). */
const KEY_BYTES = 32;

const WRONG_KEYS = `must be id:secret, separated by commas: ids of letters, digits, - and _, each once, and secrets of at least ${KEY_BYTES} bytes in base64`;

/** Parses keys that sign tokens. The message never contains a secret. */
export const signingKeys = z
  .string()
  .refine((text) => {
    const keys = parseSigningKeys(text);
    const areWhole = keys.every(({ id, secret }) => /^[\w-]{1,64}$/.test(id) && secret.length >= KEY_BYTES);
    return keys.length > 0 && areWhole && new Set(keys.map(({ id }) => id)).size === keys.length;
  }, WRONG_KEYS)
  .optional();

/** Returns the keys of BROWSER_TOKEN_KEYS, in their order. A secret that is not base64 is empty. */
export const parseSigningKeys = (text: string | undefined): SigningKey[] =>
  parseList(text).map((entry) => {
    const [, id = '', secret = ''] = /^([^:]*):([A-Za-z0-9+/_-]+={0,2})$/.exec(entry) ?? [];
    return { id, secret: Buffer.from(secret, 'base64') };
  });

/** Returns the entries of a list that is separated by commas. */
export const parseList = (text: string | undefined): string[] => split(text ?? '');

/** Returns the folders of TOOL_SERVER_FOLDERS. */
export const parseFolders = (text: string | undefined): ToolServerFolder[] =>
  parseList(text).map((entry) => ({ path: entry.replace(/:rw$/, ''), writable: entry.endsWith(':rw') }));
