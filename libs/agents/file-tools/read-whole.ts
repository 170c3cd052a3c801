import { FileRefused, type FolderFile, type ThreadFiles } from '../harness.ts';

/** All bytes of a file, in a buffer of their own. Throws FileRefused past `maxBytes`. */
export async function readWhole(
  files: ThreadFiles,
  file: FolderFile,
  maxBytes: number,
): Promise<Uint8Array<ArrayBuffer>> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of await files.read(file)) {
    // It may have been written anew since it was listed.
    size += chunk.byteLength;
    if (size > maxBytes) throw new FileRefused(`${file.path} has more than ${maxBytes} bytes.`);
    chunks.push(chunk);
  }
  const whole = new Uint8Array(size);
  let at = 0;
  for (const chunk of chunks) {
    whole.set(chunk, at);
    at += chunk.byteLength;
  }
  return whole;
}
