const HEADER_BYTES = 8;

/** An answer announces more bytes than it may have. */
export class AnswerTooLarge extends Error {
  override name = 'AnswerTooLarge';
}

export interface RawAnswer {
  /** V8-serialized. */
  message: Uint8Array<ArrayBuffer>;
  bytes: Uint8Array<ArrayBuffer>;
}

/** Reads answers of a child from the pieces that its pipe brings. Copies each piece as it comes, never a whole answer at once. */
export class AnswerReader {
  private readonly header = new DataView(new ArrayBuffer(HEADER_BYTES));
  private headerRead = 0;
  private body: Uint8Array<ArrayBuffer> | null = null;
  private bodyRead = 0;

  /**
   * Returns the answer that ends with this piece, if one does. What follows it is dropped, because a child answers once for
   * each request. Throws AnswerTooLarge for an answer of more than `maxBytes`.
   */
  take(piece: Uint8Array, maxBytes: number): RawAnswer | null {
    const rest = this.takeHeader(piece);
    if (this.headerRead < HEADER_BYTES) return null;
    const messageBytes = this.header.getUint32(0);
    const length = messageBytes + this.header.getUint32(4);
    // Before any memory is allocated for it.
    if (length > maxBytes) throw new AnswerTooLarge(`The answer has ${length} bytes, and may have ${maxBytes}.`);
    this.body ??= new Uint8Array(length);
    const taken = rest.subarray(0, length - this.bodyRead);
    this.body.set(taken, this.bodyRead);
    this.bodyRead += taken.byteLength;
    if (this.bodyRead < length) return null;
    const answer = { message: this.body.subarray(0, messageBytes), bytes: this.body.subarray(messageBytes) };
    this.body = null;
    this.headerRead = this.bodyRead = 0;
    return answer;
  }

  /** Returns what follows the header. */
  private takeHeader(piece: Uint8Array): Uint8Array {
    const count = Math.min(HEADER_BYTES - this.headerRead, piece.byteLength);
    for (let i = 0; i < count; i++) this.header.setUint8(this.headerRead++, piece[i] ?? 0);
    return piece.subarray(count);
  }
}
