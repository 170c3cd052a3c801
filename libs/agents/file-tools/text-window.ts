/** A line that is longer counts as several, so that a reader gets everywhere by lines. UTF-16 units. */
const MAX_LINE = 64 * 1024;

export interface TextWindow {
  /** Exactly as it stands in the file. */
  text: string;
  /** How many lines it has. */
  lines: number;
  /** How many lines were passed before it; fewer than asked for where the text ends before. */
  skipped: number;
  /** Whether the text goes on. */
  more: boolean;
}

/**
 * Whole lines of a text, `limit` of them at most from line `offset` on (1 is the first), and at most `maxBytes` of UTF-8,
 * which is more than a line can have. Reads no further than it must, and keeps nothing else in memory.
 */
export async function takeWindow(
  pieces: AsyncIterable<string> | Iterable<string>,
  { offset, limit, maxBytes }: { offset: number; limit: number; maxBytes: number },
): Promise<TextWindow> {
  const taken: string[] = [];
  let skipped = 0;
  let bytes = 0;
  for await (const line of linesOf(pieces)) {
    if (skipped < offset - 1) {
      skipped++;
      continue;
    }
    bytes += Buffer.byteLength(line);
    if (taken.length === limit || bytes > maxBytes) {
      return { text: taken.join(''), lines: taken.length, skipped, more: true };
    }
    taken.push(line);
  }
  return { text: taken.join(''), lines: taken.length, skipped, more: false };
}

/** Lines with what ends them. */
async function* linesOf(pieces: AsyncIterable<string> | Iterable<string>): AsyncGenerator<string> {
  let line = '';
  for await (const piece of pieces) {
    let at = 0;
    while (at < piece.length) {
      const newline = piece.indexOf('\n', at);
      const end = endWithin(piece, at, newline === -1 ? piece.length : newline + 1, MAX_LINE - line.length);
      line += piece.slice(at, end);
      at = end;
      if (line.length >= MAX_LINE || line.endsWith('\n')) {
        yield line;
        line = '';
      }
    }
  }
  if (line !== '') yield line;
}

/** `end`, or so much less that no more than `room` is taken, but never half a character. */
function endWithin(text: string, at: number, end: number, room: number): number {
  if (end - at <= room) return end;
  const isHalf = /[\uD800-\uDBFF]/.test(text.charAt(at + room - 1));
  return at + room + (isHalf ? 1 : 0);
}
