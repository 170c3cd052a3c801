import { BOUNDS } from '#domain';

/** JSON is nested too deeply, or has too many parts. */
export class MessageTooComplex extends Error {
  override name = 'MessageTooComplex';
}

const MAX_DEPTH = BOUNDS.messages.depth.value;
const MAX_PARTS = BOUNDS.messages.parts.value;

const [QUOTE, BACKSLASH, LF, CR, OPEN_MAP, OPEN_LIST, CLOSE_MAP, CLOSE_LIST] = [34, 92, 10, 13, 123, 91, 125, 93];
const [COMMA, COLON] = [44, 58];
/** UTF-16 units that are looked at before the parts are compared with their limit. */
const STEP = 16 * 1024;

/** Throws MessageTooComplex for a JSON text with too many levels or parts. */
export function checkShape(json: string): void {
  const shape = new JsonShape('body');
  for (let at = 0; at < json.length; at += STEP) shape.take(Buffer.from(json.slice(at, at + STEP)));
}

/** Where a message ends: with its line, with an empty line (server-sent events), or with its body. */
const LINES_BETWEEN = { line: 1, event: 2, body: Infinity };

/** Looks at JSON as it arrives, before anything parses it. Linear, and a piece at a time. */
export class JsonShape {
  private depth = 0;
  private parts = 0;
  private inText = false;
  private isEscaped = false;
  private emptyLines = 0;
  private readonly linesBetween: number;

  constructor(kind: keyof typeof LINES_BETWEEN) {
    this.linesBetween = LINES_BETWEEN[kind];
  }

  /** Throws MessageTooComplex; nothing can be read any more after that. */
  take(piece: Uint8Array): void {
    for (let i = 0; i < piece.length; i++) {
      const byte = piece[i] ?? 0;
      if (byte === LF || byte === CR) this.endLine(byte);
      else if (this.inText) {
        if (this.isEscaped) this.isEscaped = false;
        else if (byte === BACKSLASH) this.isEscaped = true;
        else if (byte === QUOTE) this.inText = false;
      } else this.takeOutside(byte);
    }
    this.checkParts();
  }

  private checkParts(): void {
    if (this.parts > MAX_PARTS) throw new MessageTooComplex(`A message has more than ${MAX_PARTS} parts.`);
  }

  private takeOutside(byte: number): void {
    this.emptyLines = 0;
    if (byte === QUOTE) this.inText = true;
    const opens = byte === OPEN_MAP || byte === OPEN_LIST;
    if (opens || byte === COMMA || byte === COLON) this.parts++;
    if (opens) {
      if (++this.depth > MAX_DEPTH) throw new MessageTooComplex(`A message has more than ${MAX_DEPTH} levels.`);
    } else if (byte === CLOSE_MAP || byte === CLOSE_LIST) this.depth--;
  }

  /** No text of JSON holds the end of a line: so a quotation mark in a comment cannot hide what follows. */
  private endLine(byte: number): void {
    this.inText = false;
    this.isEscaped = false;
    if (byte === CR || ++this.emptyLines < this.linesBetween) return;
    // A piece may have the end of a message and the beginning of the next.
    this.checkParts();
    this.depth = 0;
    this.parts = 0;
    this.emptyLines = 0;
  }
}
