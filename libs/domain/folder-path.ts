import { BOUNDS } from './bounds.ts';

/** The read-only folders that an agent sees beside its own: files that callers attached, and files that tools made. */
export const ATTACHMENTS_FOLDER = 'attachments';
export const ARTIFACTS_FOLDER = 'artifacts';

const MAX_LENGTH = BOUNDS.texts.path.value;
const MAX_PARTS = BOUNDS.texts.pathParts.value;
/** The most UTF-16 units that can become MAX_LENGTH characters, plus `./`. Normalization joins at most four characters. */
const MAX_GIVEN_LENGTH = MAX_LENGTH * 4 * 2 + 2;

/** Control characters, line separators, lone surrogates, and the path separator of other systems. */
const FORBIDDEN = /[\p{Cc}\p{Zl}\p{Zp}\p{Surrogate}\\]/u;

/**
 * Returns the canonical form of a path in a folder: relative, NFC, no part empty, `.` or `..`. Else returns the reason, as a
 * clause. Drops one leading `./` or `/`, because models write it. Paths name rows and never files of a machine, so they cannot
 * escape. Every system could still store them.
 */
export function folderPath(given: string): { path: string } | { refused: string } {
  const tooLong = { refused: `is longer than ${MAX_LENGTH} characters` };
  // Checked before normalization, which takes minutes for long texts.
  if (given.length > MAX_GIVEN_LENGTH) return tooLong;
  const path = given.normalize('NFC').replace(/^\.?\//, '');
  const parts = path.split('/');
  if (FORBIDDEN.test(path)) return { refused: 'contains a backslash or a control character' };
  if (parts.some((part) => part.trim() === '')) return { refused: 'has an empty part' };
  if (parts.some((part) => part === '.' || part === '..')) return { refused: 'has a “.” or “..” part' };
  if (parts.length > MAX_PARTS) return { refused: `has more than ${MAX_PARTS} parts` };
  if (Array.from(path).length > MAX_LENGTH) return tooLong;
  return { path };
}

/** Returns whether a path is in a read-only folder. */
export function isReadOnlyPath(path: string): boolean {
  const [first] = path.split('/');
  return first === ATTACHMENTS_FOLDER || first === ARTIFACTS_FOLDER;
}

/** Returns the folders that contain a path: `a/b/c` is in `a` and `a/b`. */
export function foldersOf(path: string): string[] {
  const parts = path.split('/');
  return parts.slice(1).map((_, i) => parts.slice(0, i + 1).join('/'));
}

/**
 * Returns a function that turns names of files into distinct parts of paths, one after the other. A repeated name gets ` (2)`,
 * ` (3)` and so on before its extension.
 */
export function distinctNamer(): (name: string) => string {
  const taken = new Set<string>();
  const numbers = new Map<string, number>();
  return (given) => {
    const name = asPart(given);
    const dot = name.lastIndexOf('.');
    const end = dot > 0 ? dot : name.length;
    let number = numbers.get(name) ?? 1;
    let distinct = name;
    while (taken.has(distinct)) distinct = `${name.slice(0, end)} (${++number})${name.slice(end)}`;
    numbers.set(name, number);
    taken.add(distinct);
    return distinct;
  };
}

/** Returns a valid part of a path for a name that a caller chose. Other places show the name unchanged. */
function asPart(name: string): string {
  const part = name.normalize('NFC').replaceAll(new RegExp(`${FORBIDDEN.source}|/`, 'gu'), '_');
  return part.trim() === '' || part === '.' || part === '..' ? 'file' : part;
}
