import { Module } from '@nestjs/common';
import { CONFIG, DATABASE, LOGGER, type Config, type Database, type Logger } from '#platform';
import { BlobKeeper } from './blob-keeper.ts';
import { FileStore } from './file-store.ts';
import { openBlobStore } from './open-blob-store.ts';

@Module({
  providers: [
    {
      provide: BlobKeeper,
      inject: [CONFIG, DATABASE, LOGGER],
      useFactory: async (config: Config, { pool }: Database, logger: Logger) =>
        new BlobKeeper({ pool, store: await openBlobStore(config), logger }),
    },
    { provide: FileStore, inject: [DATABASE], useFactory: ({ pool }: Database) => new FileStore(pool) },
  ],
  exports: [BlobKeeper, FileStore],
})
export class FilesModule {}
