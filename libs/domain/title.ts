import { BOUNDS } from './bounds.ts';
import { removeCitations } from './citations.ts';
import { beginningOf } from './text.ts';

const MAX_TITLE = BOUNDS.texts.title.value;
const LOOKED_AT = BOUNDS.texts.beginning.value;
export const MAX_PREVIEW = BOUNDS.texts.preview.value;

/**
 * Returns the title of a Thread (docs/spec/decisions.md#title): the first line of its first message in at most 80 Unicode code
 * points. Collapses white space, and ends a cut title with `…`. Returns null if nothing is left.
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
