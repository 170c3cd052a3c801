import { removeCitations } from './citations.ts';
import { beginningOf } from './text.ts';

const MAX_TITLE = 80;
/** The length of the beginning that is used, UTF-16 units. The largest message as a whole takes over a second. */
const LOOKED_AT = 32 * 1024;
/** Longest preview of a message, in characters. */
export const MAX_PREVIEW = 200;

/**
 * A Thread's title: the first line of its first message, white space collapsed, at most 80 characters, `…` where cut;
 * null where nothing is left (docs/spec/decisions.md#title). Characters are Unicode code points.
 */
export function deriveTitle(text: string): string | null {
  const line =
    removeCitations(beginningOf(text.trimStart(), LOOKED_AT))
      .text.trimStart()
      .split(/\r\n|[\n\r\u2028\u2029]/, 1)[0] ?? '';
  return shorten(line, MAX_TITLE) || null;
}

/** Returns a message as one line of at most 200 characters: no citation markup, white space collapsed, `…` at a cut. */
export function previewOf(text: string): string {
  return shorten(removeCitations(beginningOf(text.trimStart(), LOOKED_AT)).text, MAX_PREVIEW);
}

function shorten(text: string, maxLength: number): string {
  const characters = Array.from(text.replace(/\s+/gu, ' ').trim());
  if (characters.length <= maxLength) return characters.join('');
  return `${characters
    .slice(0, maxLength - 1)
    .join('')
    .trimEnd()}…`;
}
