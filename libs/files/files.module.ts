import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Module } from '@nestjs/common';
import { CONFIG, type Config } from '#platform';
import { DiskBlobStore } from './disk-blob-store.ts';

/** Injection token of the process's BlobStore. */
export const BLOB_STORE = Symbol('BLOB_STORE');

/** Where blobs on disk are: BLOB_URL, or a folder in DATA_DIR. */
function blobFolder({ BLOB_URL, DATA_DIR }: Pick<Config, 'BLOB_URL' | 'DATA_DIR'>): string {
  return BLOB_URL === undefined ? join(DATA_DIR, 'blobs') : fileURLToPath(BLOB_URL);
}

@Module({
  providers: [
    { provide: BLOB_STORE, inject: [CONFIG], useFactory: (config: Config) => new DiskBlobStore(blobFolder(config)) },
  ],
  exports: [BLOB_STORE],
})
export class FilesModule {}
