import { StringDecoder } from 'node:string_decoder';

/** A message of a tool server is larger than it may be. */
export class MessageTooLarge extends Error {
  override name = 'MessageTooLarge';
}

const LF = 10;

/**
 * Cuts what comes in pieces into lines. Each byte is copied once, however many pieces a line comes in (the SDK's own buffer
 * copies all that it has at each piece), and no more than `maxBytes` of a line are kept, as it says at that time.
 */
export class MessageLines {
  private readonly decoder = new StringDecoder('utf8');
  /** Of the line under way. Decoded as they come: a line may have megabytes. */
  private pieces: string[] = [];
  /** Of the line that is coming. */
  bytes = 0;

  constructor(private readonly maxBytes: () => number) {}

  /** The lines that this piece ends, without the empty ones. Throws MessageTooLarge; nothing can be read any more after that. */
  take(piece: Uint8Array): string[] {
    const lines: string[] = [];
    let from = 0;
    for (let end = piece.indexOf(LF); end !== -1; end = piece.indexOf(LF, from)) {
      if (end > from || this.bytes > 0) {
        this.keep(piece.subarray(from, end));
        lines.push(this.pieces.join('') + this.decoder.end());
        this.drop();
      }
      from = end + 1;
    }
    this.keep(piece.subarray(from));
    return lines;
  }

  private keep(piece: Uint8Array): void {
    this.bytes += piece.length;
    const most = this.maxBytes();
    if (this.bytes > most) {
      this.drop();
      throw new MessageTooLarge(`A message is larger than ${most} bytes.`);
    }
    if (piece.length > 0) this.pieces.push(this.decoder.write(piece));
  }

  private drop(): void {
    this.pieces = [];
    this.bytes = 0;
  }
}
