/** Parses the body of a request in a child of the task pool (parse-body.ts). Returns null if it is not JSON in UTF-8. */
import { Buffer, isUtf8 } from 'node:buffer';

export default function parseJson(_value, bytes) {
  try {
    // Decoding would silently replace bytes that are not UTF-8.
    if (!isUtf8(bytes)) return { value: null };
    const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString();
    return { value: { parsed: JSON.parse(text) } };
  } catch (error) {
    if (error instanceof SyntaxError) return { value: null };
    throw error;
  }
}
