import { removeCitations } from './citations.ts';

const MAX_LENGTH = 80;

/**
 * A Thread's title: the first line of its first message, white space collapsed, at most 80 characters, `…` where cut;
 * null where nothing is left (decisions, section 3). Characters are Unicode code points.
 */
export function deriveTitle(text: string): string | null {
  const line =
    removeCitations(text)
      .text.trimStart()
      .split(/\r\n|[\n\r\u2028\u2029]/, 1)[0] ?? '';
  const characters = Array.from(line.replace(/\s+/gu, ' ').trim());
  if (characters.length === 0) return null;
  if (characters.length <= MAX_LENGTH) return characters.join('');
  return `${characters
    .slice(0, MAX_LENGTH - 1)
    .join('')
    .trimEnd()}…`;
}
