import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Config } from '#platform';
import type { BlobStore } from './blob-store.ts';
import { DiskBlobStore } from './disk-blob-store.ts';

/**
 * Where bytes are kept: BLOB_URL, or a folder in DATA_DIR. Nothing to close: idle connections keep no process alive.
 *
 * @param hasFiles whether the installation has files. Then a folder without the store's own is a wrong one, and not a new one.
 */
export async function openBlobStore(
  { BLOB_URL, DATA_DIR }: Pick<Config, 'BLOB_URL' | 'DATA_DIR'>,
  hasFiles: () => Promise<boolean>,
): Promise<BlobStore> {
  if (BLOB_URL?.startsWith('s3:')) {
    // Only where it is wanted: the AWS SDK takes half a second and 20 MB to load.
    const { S3BlobStore } = await import('./s3-blob-store.ts');
    return new S3BlobStore(BLOB_URL);
  }
  const folder = BLOB_URL === undefined ? join(DATA_DIR, 'blobs') : fileURLToPath(BLOB_URL);
  return new DiskBlobStore(folder, async () => !(await hasFiles()));
}
