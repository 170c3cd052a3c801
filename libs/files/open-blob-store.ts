import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Config } from '#platform';
import type { BlobStore } from './blob-store.ts';
import { DiskBlobStore } from './disk-blob-store.ts';

/**
 * Opens the blob store at BLOB_URL, or in a folder in DATA_DIR. Needs no close, because idle connections keep no process alive.
 *
 * @param hasFiles whether the installation has files. Then a folder that is not a store is a wrong one, not a new one.
 */
export async function openBlobStore(
  { BLOB_URL, DATA_DIR }: Pick<Config, 'BLOB_URL' | 'DATA_DIR'>,
  hasFiles: () => Promise<boolean>,
): Promise<BlobStore> {
  if (BLOB_URL?.startsWith('s3:')) {
    // Imported only if needed, because the AWS SDK takes half a second and 20 MB to load.
    const { S3BlobStore } = await import('./s3-blob-store.ts');
    return new S3BlobStore(BLOB_URL);
  }
  const folder = BLOB_URL === undefined ? join(DATA_DIR, 'blobs') : fileURLToPath(BLOB_URL);
  return new DiskBlobStore(folder, async () => !(await hasFiles()));
}
