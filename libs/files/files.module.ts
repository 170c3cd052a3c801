import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Module } from '@nestjs/common';
import { CONFIG, DATABASE, LOGGER, type Config, type Database, type Logger } from '#platform';
import { BlobKeeper } from './blob-keeper.ts';
import { DiskBlobStore } from './disk-blob-store.ts';

/** Where blobs on disk are: BLOB_URL, or a folder in DATA_DIR. */
function blobFolder({ BLOB_URL, DATA_DIR }: Pick<Config, 'BLOB_URL' | 'DATA_DIR'>): string {
  return BLOB_URL === undefined ? join(DATA_DIR, 'blobs') : fileURLToPath(BLOB_URL);
}

@Module({
  providers: [
    {
      provide: BlobKeeper,
      inject: [CONFIG, DATABASE, LOGGER],
      useFactory: (config: Config, { pool }: Database, logger: Logger) =>
        new BlobKeeper({ pool, store: new DiskBlobStore(blobFolder(config)), logger }),
    },
  ],
  exports: [BlobKeeper],
})
export class FilesModule {}
