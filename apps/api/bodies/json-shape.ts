import { BOUNDS } from '#domain';

const MAX_DEPTH = BOUNDS.requests.depth.value;
const MAX_VALUES = BOUNDS.requests.values.value;
const MAX_FIELDS = BOUNDS.requests.fields.value;

const [QUOTE, BACKSLASH, COMMA] = [0x22, 0x5c, 0x2c];
const [OPEN_LIST, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d];

/**
 * Counts values and depth of JSON while its bytes arrive, without parsing it. A body of 8 MiB has room for millions of values:
 * parsing them takes seconds and hundreds of MB, though no operation accepts them. Does not check the syntax.
 */
export class JsonShape {
  private depth = 0;
  /** The number of values: one for each list or object that opens, and one for each comma. */
  private values = 0;
  /** The number of commas of the open object at each depth. Those of lists are not counted. */
  private readonly commas: number[] = [];
  private isInString = false;
  private isEscaped = false;

  /** Takes the next bytes. Returns the first limit that is exceeded, or null. */
  add(bytes: Uint8Array): string | null {
    const end = bytes.length;
    for (let i = 0; i < end; i++) {
      if (this.isInString) i = this.skipString(bytes, i);
      else if (!this.take(bytes[i]!)) return this.problem();
    }
    return null;
  }

  /** Returns the index of the quote that ends the string, or the number of bytes. */
  private skipString(bytes: Uint8Array, from: number): number {
    let i = from;
    for (; i < bytes.length; i++) {
      if (this.isEscaped) this.isEscaped = false;
      else if (bytes[i] === BACKSLASH) this.isEscaped = true;
      else if (bytes[i] === QUOTE) {
        this.isInString = false;
        return i;
      }
    }
    return i;
  }

  /** Takes a byte outside of strings. Returns whether the limits hold. */
  private take(byte: number): boolean {
    switch (byte) {
      case QUOTE:
        this.isInString = true;
        return true;
      case COMMA:
        this.commas[this.depth]! += 1;
        return ++this.values <= MAX_VALUES && !(this.commas[this.depth]! >= MAX_FIELDS);
      case OPEN_LIST:
        return this.open(-MAX_VALUES);
      case OPEN_OBJECT:
        return this.open(0);
      case CLOSE_LIST:
      case CLOSE_OBJECT:
        this.depth--;
        return true;
      default:
        return true;
    }
  }

  private open(commas: number): boolean {
    this.commas[++this.depth] = commas;
    return this.depth <= MAX_DEPTH && ++this.values <= MAX_VALUES;
  }

  private problem(): string {
    if (this.depth > MAX_DEPTH) return `body: must not be nested deeper than ${MAX_DEPTH}`;
    if (this.values > MAX_VALUES) return `body: must have at most ${MAX_VALUES} values`;
    return `body: must have at most ${MAX_FIELDS} fields in one object`;
  }
}
