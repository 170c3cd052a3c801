import { storableText } from '#domain';
import { newId } from '#platform';
import type { BlobKeeper } from './blob-keeper.ts';
import type { BlobSource } from './blob-store.ts';
import { detectMimeType, withHead } from './mime-type.ts';

/** A file to store: its name, its content, and the most bytes it can have. */
export interface FileSource {
  name: string;
  /** The type that the sender declares. It counts if neither the bytes nor the name determine one. */
  declaredType?: string;
  bytes: BlobSource;
  maxBytes: number;
}

/** The row of a file whose bytes are stored. The file exists once an append or a draft has stored the row. */
export interface PreparedFile {
  id: string;
  run_id: string | null;
  kind: 'attachment' | 'artifact';
  name: string;
  mime_type: string | null;
  size: number;
  sha256: string;
  blob_key: string;
}

const MAX_NAME_LENGTH = 255;

/** Longer than any request. */
const REQUEST_MS = 60 * 60 * 1_000;
/** Longer than a Run can work (a week), because a tool may continue long after it has saved a file. */
const RUN_MS = 8 * 24 * 60 * 60 * 1_000;

/** Stores the bytes of a file that a Run made. Throws as `storeFile`. */
export function storeArtifact(blobs: BlobKeeper, runId: string, source: FileSource): Promise<PreparedFile> {
  return storeFile(blobs, source, { kind: 'artifact', run_id: runId }, RUN_MS);
}

/** Stores the bytes of a file that a caller sent. Throws as `storeFile`. */
export function storeAttachment(blobs: BlobKeeper, source: FileSource): Promise<PreparedFile> {
  return storeFile(blobs, source, { kind: 'attachment', run_id: null }, REQUEST_MS);
}

/**
 * Stores the bytes and returns the row. The file exists once the row is committed. The sweeper deletes bytes without a row.
 * Throws BlobTooLarge, BlobStoreUnavailable, DatabaseUnavailable, and what the source throws.
 */
async function storeFile(
  blobs: BlobKeeper,
  { name, declaredType, bytes, maxBytes }: FileSource,
  of: Pick<PreparedFile, 'kind' | 'run_id'>,
  claimWithinMs: number,
): Promise<PreparedFile> {
  const plainName = plainFileName(name);
  const { head, whole } = bytes instanceof Uint8Array ? { head: bytes, whole: bytes } : await withHead(bytes);
  const mime_type = await detectMimeType(head, plainName, declaredType);
  const { key, size, sha256 } = await blobs.put(whole, { maxBytes, claimWithinMs });
  return { id: newId(), ...of, name: plainName, mime_type, size, sha256, blob_key: key };
}

/** Returns the last segment of a path without control characters, or `file`. It is shown and never opened. */
export function plainFileName(name: string): string {
  const last = storableText(name).split(/[/\\]/).at(-1) ?? '';
  const shown = Array.from(last.replaceAll(/\p{Cc}/gu, '').trim())
    .slice(0, MAX_NAME_LENGTH)
    .join('');
  return shown === '' || shown === '.' || shown === '..' ? 'file' : shown;
}
