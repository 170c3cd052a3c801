const BOMS: [number[], string][] = [
  [[0xef, 0xbb, 0xbf], 'utf-8'],
  [[0xff, 0xfe], 'utf-16le'],
  [[0xfe, 0xff], 'utf-16be'],
];
/** What plain text has of control characters: tabs, line and page ends, and the escapes of terminals. */
const TEXT_CONTROLS = new Set([0x08, 0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x1b]);

/**
 * The encoding of a text by its first bytes, for TextDecoder: by its byte order mark, else UTF-8 where it is that, else the
 * single bytes of Western Windows; null for what is no text.
 */
export function encodingOf(head: Uint8Array): string | null {
  const byMark = BOMS.find(([bom]) => bom.every((byte, i) => head[i] === byte));
  if (byMark) return byMark[1];
  if (head.some((byte) => (byte < 0x20 && !TEXT_CONTROLS.has(byte)) || byte === 0x7f)) return null;
  return isUtf8(head) ? 'utf-8' : 'windows-1252';
}

/** Whether these are the first bytes of UTF-8, which may be cut off within a character. */
function isUtf8(head: Uint8Array): boolean {
  try {
    new TextDecoder('utf-8', { fatal: true }).decode(head, { stream: true });
    return true;
  } catch {
    return false;
  }
}

export async function* decoded(chunks: AsyncIterable<Uint8Array>, encoding: string): AsyncGenerator<string> {
  const decoder = new TextDecoder(encoding);
  for await (const chunk of chunks) yield decoder.decode(chunk, { stream: true });
  yield decoder.decode();
}
