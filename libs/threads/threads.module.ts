import { Module } from '@nestjs/common';
import { AgentCatalogue, AgentsModule } from '#agents';
import { CommandHandler, EventStoreModule } from '#event-store';
import { BlobKeeper, FilesModule, FileStore } from '#files';
import { CONFIG, DATABASE, type Config, type Database } from '#platform';
import { ThreadReader } from './thread-reader.ts';
import { Threads } from './threads.ts';

@Module({
  imports: [AgentsModule, EventStoreModule, FilesModule],
  providers: [
    { provide: ThreadReader, inject: [DATABASE], useFactory: ({ pool }: Database) => new ThreadReader(pool) },
    {
      provide: Threads,
      inject: [ThreadReader, CommandHandler, AgentCatalogue, FileStore, BlobKeeper, CONFIG],
      useFactory: (
        reader: ThreadReader,
        handler: CommandHandler,
        agents: AgentCatalogue,
        files: FileStore,
        blobs: BlobKeeper,
        settings: Config,
      ) => new Threads({ reader, handler, agents, files, blobs, settings }),
    },
  ],
  exports: [Threads, ThreadReader],
})
export class ThreadsModule {}
