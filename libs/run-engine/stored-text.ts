import { storableText } from '#domain';

/** The first `maxBytes` bytes of UTF-8 of the text, never half a character, and the rest. */
export function splitUtf8(text: string, maxBytes: number): [string, string] {
  // A UTF-16 unit has at most 3 bytes.
  if (text.length * 3 <= maxBytes || Buffer.byteLength(text) <= maxBytes) return [text, ''];
  let bytes = 0;
  let units = 0;
  for (const character of text) {
    bytes += Buffer.byteLength(character);
    if (bytes > maxBytes) break;
    units += character.length;
  }
  return [text.slice(0, units), text.slice(units)];
}

/** The text in at most `maxBytes` bytes of UTF-8, `mark` at the end where it was cut. */
export function cutUtf8(text: string, maxBytes: number, mark: string): string {
  if (Buffer.byteLength(text) <= maxBytes) return text;
  return ownText(splitUtf8(text, maxBytes - Buffer.byteLength(mark))[0] + mark);
}

/** The same text, alone: what V8 cuts from a text keeps all of that in memory for as long as the piece lives. */
export function ownText(text: string): string {
  return Buffer.from(text).toString();
}

/** A JSON object with `change` applied to every text in it, keys included. */
export function mapTexts(value: Record<string, unknown>, change: (text: string) => string): Record<string, unknown> {
  return Object.fromEntries(Object.entries(value).map(([name, field]) => [change(name), mapValue(field, change)]));
}

function mapValue(value: unknown, change: (text: string) => string): unknown {
  if (typeof value === 'string') return change(value);
  if (Array.isArray(value)) return value.map((item) => mapValue(item, change));
  return typeof value === 'object' && value !== null ? mapTexts(value as Record<string, unknown>, change) : value;
}

/** Joins pieces of text whose borders may cut a surrogate pair in two, and makes them storable. */
export class StorablePieces {
  private half = '';

  /** The piece as far as it is sure. */
  push(piece: string): string {
    const text = this.half + piece;
    this.half = /[\uD800-\uDBFF]$/.exec(text)?.[0] ?? '';
    return storableText(text.slice(0, text.length - this.half.length));
  }

  /** What was held back, when nothing follows. */
  end(): string {
    const half = this.half;
    this.half = '';
    return storableText(half);
  }
}
