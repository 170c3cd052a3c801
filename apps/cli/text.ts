/**
 * Names, messages and logs are other people's words: what would move the cursor or set colours is shown and not done.
 * Line breaks and tabs stay.
 */
export function showControls(text: string): string {
  return text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g, escape);
}

const escape = (character: string): string => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;

/** The same, of what must stay in one line. */
export const showInLine = (text: string): string => showControls(text.replace(/[\n\t]/g, ' '));

export const countOf = (count: number, one: string, many = `${one}s`): string => `${count} ${count === 1 ? one : many}`;

/** Lines of a diff; green and red are the colours that everybody's terminal has. */
export function colourDiff(diff: string, coloured: boolean): string {
  const lines = showControls(diff).replace(/\n$/, '').split('\n');
  return lines.map((line) => (coloured ? colourLine(line) : line)).join('\n');
}

function colourLine(line: string): string {
  const colour = { '+': 32, '-': 31, '@': 36 }[line[0] ?? ''];
  return colour === undefined ? line : `\u001b[${colour}m${line}\u001b[39m`;
}
