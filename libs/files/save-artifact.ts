import { storableText } from '#domain';
import { newId } from '#platform';
import type { BlobStore } from './blob-store.ts';

export interface Artifact {
  name: string;
  mimeType: string | null;
  bytes: Uint8Array;
}

/** The row of a file whose bytes are stored: what an append takes (`NewFile` of the event store). */
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

/** Largest file, bytes (decisions, section 7). */
const MAX_FILE_BYTES = 64 * 1024 * 1024;
const MAX_NAME_LENGTH = 255;

/**
 * Stores the bytes of a file that an agent made. It becomes the Thread's by the append that takes the row; bytes without
 * one are for the sweeper. Throws BlobTooLarge, BlobStoreAway.
 */
export async function saveArtifact(blobs: BlobStore, runId: string, artifact: Artifact): Promise<PreparedFile> {
  const { key, size, sha256 } = await blobs.put(artifact.bytes, { maxBytes: MAX_FILE_BYTES });
  return {
    id: newId(),
    run_id: runId,
    kind: 'artifact',
    name: plainFileName(artifact.name),
    mime_type: artifact.mimeType,
    size,
    sha256,
    blob_key: key,
  };
}

/** The last part of a path, without control characters; `file` where nothing is left. It is shown, never opened. */
export function plainFileName(name: string): string {
  const last = storableText(name).split(/[/\\]/).at(-1) ?? '';
  const shown = Array.from(last.replaceAll(/\p{Cc}/gu, '').trim())
    .slice(0, MAX_NAME_LENGTH)
    .join('');
  return shown === '' || shown === '.' || shown === '..' ? 'file' : shown;
}
