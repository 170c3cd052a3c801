/** The first so many bytes of UTF-8, never half a character. */
export function firstBytes(text: string, maxBytes: number): string {
  if (Buffer.byteLength(text) <= maxBytes) return text;
  // A stream holds back a character that is not complete yet.
  return new TextDecoder('utf-8', { ignoreBOM: true }).decode(Buffer.from(text).subarray(0, maxBytes), {
    stream: true,
  });
}
