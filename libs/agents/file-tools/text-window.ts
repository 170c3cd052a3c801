import { BOUNDS } from '#domain';

const MAX_LINE = BOUNDS.files.line.value;
const NEWLINE = 0x0a;

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

interface WindowOptions {
  offset: number;
  limit: number;
  maxBytes: number;
}

/**
 * Whole lines of a text, `limit` of them at most from line `offset` on (1 is the first), and at most `maxBytes` of UTF-8,
 * which is more than a line can have. Reads no further than it must, and keeps nothing else in memory. Each piece is worked
 * through in one step, so a piece should be small.
 */
export async function takeWindow(
  pieces: AsyncIterable<string> | Iterable<string>,
  options: WindowOptions,
): Promise<TextWindow> {
  const reader = new WindowReader(options);
  for await (const piece of pieces) {
    reader.read(piece);
    if (reader.isFull) break;
  }
  return reader.finish();
}

class WindowReader {
  private readonly taken: string[] = [];
  private skipped = 0;
  private bytes = 0;
  /** The line under way: its length, and its text if it will be taken. */
  private length = 0;
  private line = '';
  isFull = false;

  constructor(private readonly options: WindowOptions) {}

  read(piece: string): void {
    let at = 0;
    while (at < piece.length && !this.isFull) {
      const newline = piece.indexOf('\n', at);
      const end = endWithin(piece, at, newline === -1 ? piece.length : newline + 1, MAX_LINE - this.length);
      this.length += end - at;
      if (!this.isSkipping) this.line += piece.slice(at, end);
      if (this.length >= MAX_LINE || piece.charCodeAt(end - 1) === NEWLINE) this.endLine();
      at = end;
    }
  }

  finish(): TextWindow {
    if (this.length > 0 && !this.isFull) this.endLine();
    return { text: this.taken.join(''), lines: this.taken.length, skipped: this.skipped, more: this.isFull };
  }

  private get isSkipping(): boolean {
    return this.skipped < this.options.offset - 1;
  }

  private endLine(): void {
    if (this.isSkipping) this.skipped++;
    else this.take(this.line);
    this.line = '';
    this.length = 0;
  }

  private take(line: string): void {
    this.bytes += Buffer.byteLength(line);
    this.isFull = this.taken.length === this.options.limit || this.bytes > this.options.maxBytes;
    if (!this.isFull) this.taken.push(line);
  }
}

/** `end`, or so much less that no more than `room` is taken, but never half a character. */
function endWithin(text: string, at: number, end: number, room: number): number {
  if (end - at <= room) return end;
  const isHalf = /[\uD800-\uDBFF]/.test(text.charAt(at + room - 1));
  return at + room + (isHalf ? 1 : 0);
}
