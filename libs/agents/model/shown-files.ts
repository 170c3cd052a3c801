import { BOUNDS } from '#domain';
import { FileRefused, type FolderFile, type ThreadFiles, type TranscriptMessage } from '../harness.ts';
import { imageTypeOf, isImageType } from '../image-type.ts';
import type { ProviderName } from './model-settings.ts';

/** The largest image, bytes. Anthropic counts its 5 MiB in base64, which is a third longer. */
const MAX_IMAGE_BYTES: Record<ProviderName, number> = {
  anthropic: (BOUNDS.files.image.value * 3) / 4,
  'openai-compatible': BOUNDS.files.image.value,
};
const MAX_IMAGES = BOUNDS.files.imageCount.value;
const MAX_IMAGES_BYTES = BOUNDS.files.images.value;
/** The folder of callers' files. */
const ATTACHMENTS = 'attachments/';

export type FilesById = ReadonlyMap<string, FolderFile>;

export interface ShownImage {
  path: string;
  mediaType: string;
  bytes: Uint8Array;
}

/**
 * Returns the transcript with a line for each attached file after its message. The last user message also lists the files that
 * no message names, because they came with a retry or were posted to the Thread.
 */
export function describeFiles(
  transcript: readonly TranscriptMessage[],
  files: FilesById,
): readonly TranscriptMessage[] {
  const named = new Set(transcript.flatMap((message) => (message.role === 'user' ? message.fileIds : [])));
  const unnamed = [...files.values()].filter(({ path, fileId }) => path.startsWith(ATTACHMENTS) && !named.has(fileId));
  const last = transcript.findLastIndex(({ role }) => role === 'user');
  return transcript.map((message, i) => {
    if (message.role !== 'user') return message;
    const fileIds = i === last ? [...message.fileIds, ...unnamed.map(({ fileId }) => fileId)] : message.fileIds;
    const lines = fileIds.flatMap((fileId) => fileLine(files.get(fileId)));
    return lines.length === 0 ? message : { ...message, text: [message.text, ...lines].join('\n'), fileIds };
  });
}

/** Created once, because `toLocaleString` creates one for each call. */
const NUMBERS = new Intl.NumberFormat('en');

/** Returns no line for a deleted file. */
function fileLine(file: FolderFile | undefined): string[] {
  if (file === undefined) return [];
  const { path, mimeType, size } = file;
  return [`Attached file: ${path} (${mimeType ?? 'of unknown type'}, ${NUMBERS.format(size)} bytes)`];
}

/** Returns the images that the model is shown: the newest ones of accepted types and sizes. */
export function shownImages(
  transcript: readonly TranscriptMessage[],
  files: FilesById,
  provider: ProviderName,
): ReadonlySet<string> {
  const shown = new Set<string>();
  let bytes = 0;
  for (const message of transcript.toReversed()) {
    if (message.role === 'assistant') continue;
    for (const fileId of message.fileIds ?? []) {
      const file = files.get(fileId);
      if (file === undefined || shown.has(fileId) || !isImage(file, provider)) continue;
      if (shown.size >= MAX_IMAGES || bytes + file.size > MAX_IMAGES_BYTES) return shown;
      shown.add(fileId);
      bytes += file.size;
    }
  }
  return shown;
}

function isImage({ mimeType, size }: FolderFile, provider: ProviderName): boolean {
  return isImageType(mimeType) && size <= MAX_IMAGE_BYTES[provider];
}

/** Returns null for a file that was deleted or whose bytes are lost. The Thread continues without it. */
async function readWhole(file: FolderFile, read: ThreadFiles['read']): Promise<Buffer | null> {
  const pieces: Uint8Array[] = [];
  try {
    for await (const piece of await read(file)) pieces.push(piece);
  } catch (error) {
    if (error instanceof FileRefused) return null;
    throw error;
  }
  return Buffer.concat(pieces);
}

/** Bytes of memory for each byte of an image: the file, its base64, and two copies of the request. */
const BYTES_AN_IMAGE_BYTE = 5;

/** Returns the memory that the shown images take until they are sent, bytes. */
export function imageBytes(shown: ReadonlySet<string>, files: FilesById): number {
  let bytes = 0;
  for (const fileId of shown) bytes += files.get(fileId)?.size ?? 0;
  return bytes * BYTES_AN_IMAGE_BYTE;
}

/** Reads the shown images that the messages name, one after the other. Throws what `read` throws. */
export async function readImages(
  transcript: readonly TranscriptMessage[],
  shown: ReadonlySet<string>,
  { files, read, signal }: { files: FilesById; read: ThreadFiles['read']; signal: AbortSignal },
): Promise<ReadonlyMap<string, ShownImage>> {
  const images = new Map<string, ShownImage>();
  const named = new Set(transcript.flatMap((message) => (message.role === 'assistant' ? [] : (message.fileIds ?? []))));
  for (const fileId of named) {
    const file = files.get(fileId);
    if (file === undefined || !shown.has(fileId)) continue;
    signal.throwIfAborted();
    const bytes = await readWhole(file, read);
    const mediaType = bytes === null ? null : imageTypeOf(bytes);
    if (bytes !== null && mediaType !== null) images.set(fileId, { path: file.path, mediaType, bytes });
  }
  return images;
}
