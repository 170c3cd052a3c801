/** A message of a tool server is larger than it may be. */
export class MessageTooLarge extends Error {
  override name = 'MessageTooLarge';
}

const LF = 10;

/**
 * Cuts what comes in pieces into lines. Each byte is copied once, however many pieces a line comes in (the SDK's own buffer
 * copies all that it has at each piece), and no more than `maxBytes` of a line are kept.
 */
export class MessageLines {
  private pieces: Uint8Array[] = [];
  private bytes = 0;

  constructor(private readonly maxBytes: number) {}

  /** The lines that this piece ends. Throws MessageTooLarge; nothing can be read any more after that. */
  take(piece: Uint8Array): string[] {
    const lines: string[] = [];
    let from = 0;
    for (let end = piece.indexOf(LF); end !== -1; end = piece.indexOf(LF, from)) {
      this.keep(piece.subarray(from, end));
      lines.push(Buffer.concat(this.pieces).toString('utf8'));
      this.drop();
      from = end + 1;
    }
    this.keep(piece.subarray(from));
    return lines;
  }

  private keep(piece: Uint8Array): void {
    this.bytes += piece.length;
    if (this.bytes > this.maxBytes) {
      this.drop();
      throw new MessageTooLarge(`A message is larger than ${this.maxBytes} bytes.`);
    }
    if (piece.length > 0) this.pieces.push(piece);
  }

  private drop(): void {
    this.pieces = [];
    this.bytes = 0;
  }
}
