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

/** Parses names of variables, separated by commas. */
export const variableNames = (fallback: string) =>
  z
    .string()
    .default(fallback)
    .refine((text) => split(text).every((name) => /^[A-Za-z_][A-Za-z0-9_]*$/.test(name)), {
      message: 'must be names of variables, separated by commas',
    });

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

/** Returns the entries of a list that is separated by commas. */
export const parseList = (text: string | undefined): string[] => split(text ?? '');

/** Returns the folders of TOOL_SERVER_FOLDERS. */
export const parseFolders = (text: string | undefined): ToolServerFolder[] =>
  parseList(text).map((entry) => ({ path: entry.replace(/:rw$/, ''), writable: entry.endsWith(':rw') }));
