import { Module } from '@nestjs/common';
import { CONFIG, DATABASE, type Config, type Database } from '#platform';
import { CommandHandler, type Commit } from './handle-commands.ts';
import { ThreadStore } from './thread-store.ts';

/** Tells this process's parts of its own commits. What they do is a hint to others: it may be lost, and is never awaited. */
export class CommitFeed {
  private readonly listeners: ((commit: Commit) => void)[] = [];
  private readonly deleteListeners: ((threadId: string, version: number) => void)[] = [];

  /** Adds a listener for as long as the process lives. It must not throw and must not block. */
  onCommit(listener: (commit: Commit) => void): void {
    this.listeners.push(listener);
  }

  /** Likewise, of Threads that were deleted: the version is above all that the Thread had. */
  onDeleted(listener: (threadId: string, version: number) => void): void {
    this.deleteListeners.push(listener);
  }

  emit(commit: Commit): void {
    for (const listener of this.listeners) listener(commit);
  }

  emitDeleted(threadId: string, version: number): void {
    for (const listener of this.deleteListeners) listener(threadId, version);
  }
}

@Module({
  providers: [
    CommitFeed,
    {
      provide: ThreadStore,
      inject: [DATABASE],
      useFactory: ({ pool }: Database) => new ThreadStore(pool),
    },
    {
      provide: CommandHandler,
      inject: [ThreadStore, CommitFeed, CONFIG],
      useFactory: (store: ThreadStore, feed: CommitFeed, { LEASE_MS }: Config) =>
        new CommandHandler({
          store,
          leaseMs: LEASE_MS,
          onCommit: (commit) => feed.emit(commit),
          onDeleted: (threadId, version) => feed.emitDeleted(threadId, version),
        }),
    },
  ],
  exports: [ThreadStore, CommandHandler, CommitFeed],
})
export class EventStoreModule {}
