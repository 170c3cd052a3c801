import { storableText } from '#domain';

/** The first `maxBytes` bytes of UTF-8 of the text, never half a character, and the rest. */
export function splitUtf8(text: string, maxBytes: number): [string, string] {
  // A UTF-16 unit has 1 to 3 bytes.
  const mayFit = text.length <= maxBytes;
  if (mayFit && (text.length * 3 <= maxBytes || Buffer.byteLength(text) <= maxBytes)) return [text, ''];
  const { read: units } = new TextEncoder().encodeInto(text.slice(0, maxBytes), new Uint8Array(maxBytes));
  return [text.slice(0, units), text.slice(units)];
}

/** The text in at most `maxBytes` bytes of UTF-8, `mark` at the end where it was cut. */
export function cutUtf8(text: string, maxBytes: number, mark: string): string {
  if (text.length <= maxBytes && Buffer.byteLength(text) <= maxBytes) return text;
  return ownText(splitUtf8(text, maxBytes - Buffer.byteLength(mark))[0] + mark);
}

/** The same text, alone: what V8 cuts from a text keeps all of that in memory for as long as the delta lives. */
export function ownText(text: string): string {
  return Buffer.from(text).toString();
}

/** A JSON object with `change` applied to every text in it, keys included; itself where nothing changes. */
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

/** Joins deltas of text whose borders may cut a surrogate pair in two, and makes them storable. */
export class StorableDeltas {
  private half = '';

  /** The delta as far as it is sure. */
  push(delta: string): string {
    const text = this.half + delta;
    const last = text.slice(-1);
    this.half = last >= '\uD800' && last <= '\uDBFF' ? last : '';
    return storableText(text.slice(0, text.length - this.half.length));
  }

  /** What was held back, when nothing follows. */
  end(): string {
    const half = this.half;
    this.half = '';
    return storableText(half);
  }
}
