import { storableText } from '#domain';

/** Splits the text after at most `maxBytes` bytes of UTF-8, never within a character. */
export function splitUtf8(text: string, maxBytes: number): [string, string] {
  // A UTF-16 unit has 1 to 3 bytes.
  const mayFit = text.length <= maxBytes;
  if (mayFit && (text.length * 3 <= maxBytes || Buffer.byteLength(text) <= maxBytes)) return [text, ''];
  const { read: units } = new TextEncoder().encodeInto(text.slice(0, maxBytes), new Uint8Array(maxBytes));
  return [text.slice(0, units), text.slice(units)];
}

/** Returns the text in at most `maxBytes` bytes of UTF-8, with `mark` at the end if it was cut. */
export function cutUtf8(text: string, maxBytes: number, mark: string): string {
  if (text.length <= maxBytes && Buffer.byteLength(text) <= maxBytes) return text;
  return ownText(splitUtf8(text, maxBytes - Buffer.byteLength(mark))[0] + mark);
}

/** Returns a copy of the text. In V8, a substring keeps its whole source text in memory. */
export function ownText(text: string): string {
  return Buffer.from(text).toString();
}

/** Returns a JSON object with `change` applied to every text, also to keys. Returns the same object if nothing changes. */
export function mapTexts(value: Record<string, unknown>, change: (text: string) => string): Record<string, unknown> {
  return mapValue(value, change) as Record<string, unknown>;
}

function mapValue(value: unknown, change: (text: string) => string): unknown {
  if (typeof value === 'string') return change(value);
  if (typeof value !== 'object' || value === null) return value;
  return Array.isArray(value) ? mapItems(value, change) : mapFields(value as Record<string, unknown>, change);
}

function mapItems(items: unknown[], change: (text: string) => string): unknown[] {
  let mapped = items;
  for (const [i, item] of items.entries()) {
    const to = mapValue(item, change);
    if (to === item) continue;
    if (mapped === items) mapped = [...items];
    mapped[i] = to;
  }
  return mapped;
}

function mapFields(fields: Record<string, unknown>, change: (text: string) => string): Record<string, unknown> {
  const names = Object.keys(fields);
  const mapped: [string, unknown][] = [];
  let isChanged = false;
  for (const name of names) {
    const field = fields[name];
    const to: [string, unknown] = [change(name), mapValue(field, change)];
    isChanged ||= to[0] !== name || to[1] !== field;
    mapped.push(to);
  }
  return isChanged ? Object.fromEntries(mapped) : fields;
}

/** Makes deltas of text storable. A surrogate pair may be split between two deltas. */
export class StorableDeltas {
  private half = '';

  /** Returns the delta, without a high surrogate at its end, which waits for the next delta. */
  push(delta: string): string {
    const text = this.half + delta;
    const last = text.slice(-1);
    this.half = last >= '\uD800' && last <= '\uDBFF' ? last : '';
    return storableText(text.slice(0, text.length - this.half.length));
  }

  /** Returns the text that still waits, at the end of the stream. */
  end(): string {
    const half = this.half;
    this.half = '';
    return storableText(half);
  }
}
