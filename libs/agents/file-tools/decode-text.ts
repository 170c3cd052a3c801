import { isAscii, isUtf8 } from 'node:buffer';
import { countUtf8, wholeCharacters } from '#platform';

/** The characters of the bytes 0x80 to 0x9f. Node 20 decodes windows-1252 as Latin 1, where they are control characters. */
const C1_OF_WINDOWS_1252 =
  '\u20ac\x81\u201a\u0192\u201e\u2026\u2020\u2021\u02c6\u2030\u0160\u2039\u0152\x8d\u017d\x8f' +
  '\x90\u2018\u2019\u201c\u201d\u2022\u2013\u2014\u02dc\u2122\u0161\u203a\u0153\x9d\u017e\u0178';

/** Decodes the bytes of one text. */
export class TextDecoding {
  /** How many characters outside ASCII, and invalid sequences of bytes, have been read, if the text is decoded as UTF-8. */
  valid = 0;
  invalid = 0;
  /** The chunk with the most invalid sequences. It starts at a character's first byte. */
  worst: { bytes: Uint8Array; invalid: number } = { bytes: new Uint8Array(), invalid: 0 };
  private rest: Uint8Array = new Uint8Array();

  constructor(private readonly label: string) {}

  /** Yields the text. Bytes that are invalid in the encoding become U+FFFD. */
  async *read(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
    const decoder = new TextDecoder(this.label);
    for await (const chunk of chunks) {
      this.check(chunk);
      yield this.corrected(decoder.decode(chunk, { stream: true }));
    }
    if (this.rest.byteLength > 0) this.invalid++;
    yield this.corrected(decoder.decode());
  }

  private corrected(piece: string): string {
    if (this.label !== 'windows-1252') return piece;
    return piece.replaceAll(/[\x80-\x9f]/g, (control) => C1_OF_WINDOWS_1252[control.charCodeAt(0) - 0x80] ?? control);
  }

  private check(chunk: Uint8Array): void {
    if (this.label !== 'utf-8' || (isAscii(chunk) && this.rest.byteLength === 0)) return;
    const bytes = this.rest.byteLength === 0 ? chunk : Buffer.concat([this.rest, chunk]);
    const whole = wholeCharacters(bytes);
    const counted = countUtf8(whole);
    // Surrogates are counted as characters.
    const invalid = isUtf8(whole) ? 0 : Math.max(1, counted.invalid);
    this.valid += counted.valid;
    this.invalid += invalid;
    if (invalid > this.worst.invalid) this.worst = { bytes, invalid };
    this.rest = Uint8Array.from(bytes.subarray(whole.byteLength));
  }
}
