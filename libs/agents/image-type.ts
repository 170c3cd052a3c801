/** The image types that providers accept, with the first bytes of such files. `.` matches any byte. */
const SIGNATURES: Record<string, RegExp> = {
  'image/png': /^\x89PNG\r\n\x1a\n/,
  'image/jpeg': /^\xff\xd8\xff/,
  'image/gif': /^GIF8[79]a/,
  'image/webp': /^RIFF.{4}WEBP/s,
};

/** Returns whether models can be shown files of this type. */
export const isImageType = (mimeType: string | null): boolean =>
  mimeType !== null && Object.hasOwn(SIGNATURES, mimeType);

/**
 * Returns the type of an image by its first bytes, null for another type. A stored type is not enough, because it may come from the
 * sender. A provider that refuses one image refuses every later call of the Thread.
 */
export function imageTypeOf(bytes: Uint8Array): string | null {
  const head = Buffer.from(bytes.subarray(0, 16)).toString('latin1');
  return Object.keys(SIGNATURES).find((type) => SIGNATURES[type]?.test(head)) ?? null;
}
