import { Module } from '@nestjs/common';
import { CONFIG, DATABASE, fileQuotaOf, LOGGER, type Config, type Database, type Logger } from '#platform';
import { BlobKeeper } from './blob-keeper.ts';
import { FileStore } from './file-store.ts';
import { openBlobStore } from './open-blob-store.ts';

@Module({
  providers: [
    {
      provide: BlobKeeper,
      inject: [CONFIG, DATABASE, LOGGER],
      useFactory: async (config: Config, { pool }: Database, logger: Logger) => {
        const store = await openBlobStore(config, () => new FileStore(pool).hasAny());
        return new BlobKeeper({ pool, store, logger });
      },
    },
    {
      provide: FileStore,
      inject: [CONFIG, DATABASE],
      useFactory: (config: Config, { pool }: Database) => new FileStore(pool, fileQuotaOf(config)),
    },
  ],
  exports: [BlobKeeper, FileStore],
})
export class FilesModule {}
