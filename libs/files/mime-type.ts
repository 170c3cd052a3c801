import { fileTypeFromBuffer } from 'file-type';
import mime from 'mime';

/** So many bytes tell a type, if any do. */
const HEAD_BYTES = 4_100;

/** The MIME type by the first bytes, then by the name; null where neither tells (decisions, section 7). */
export async function detectMimeType(head: Uint8Array, name: string): Promise<string | null> {
  // Of so many only, however many there are: the same file must have the same type on every way.
  const byBytes = await fileTypeFromBuffer(head.subarray(0, HEAD_BYTES));
  return byBytes?.mime ?? mime.getType(name);
}

/** `type/subtype` without parameters; null for what is none, and for what says nothing. */
export function plainMimeType(declared = ''): string | null {
  const [type = ''] = declared.toLowerCase().split(';');
  const plain = /^\s*([\w!#$&^.+-]+\/[\w!#$&^.+-]+)\s*$/.exec(type)?.[1];
  return plain === undefined || plain === 'application/octet-stream' ? null : plain;
}

/** The source once more, from its beginning, and its first bytes. */
export async function withHead(
  source: AsyncIterable<Uint8Array>,
): Promise<{ head: Uint8Array; whole: AsyncIterable<Uint8Array> }> {
  const chunks = source[Symbol.asyncIterator]();
  const begun: Uint8Array[] = [];
  let length = 0;
  while (length < HEAD_BYTES) {
    const next = await chunks.next();
    if (next.done) break;
    begun.push(next.value);
    length += next.value.byteLength;
  }
  async function* whole(): AsyncGenerator<Uint8Array> {
    try {
      yield* begun;
      for (let next = await chunks.next(); !next.done; next = await chunks.next()) yield next.value;
    } finally {
      // Whoever stops early leaves nothing open.
      await chunks.return?.();
    }
  }
  return { head: Buffer.concat(begun), whole: whole() };
}
