import { Module } from '@nestjs/common';
import { CONFIG, DATABASE, type Config, type Database } from '#platform';
import { CommandHandler, type Commit } from './handle-commands.ts';
import { ThreadStore } from './thread-store.ts';

/** Notifies listeners of the commits of this process. Notifications are hints: they may be lost and are never awaited. */
export class CommitFeed {
  private readonly listeners: ((commit: Commit) => void)[] = [];
  private readonly deleteListeners: ((threadId: string, version: number) => void)[] = [];

  /** Adds a listener for as long as the process lives. It must not throw and must not block. */
  onCommit(listener: (commit: Commit) => void): void {
    this.listeners.push(listener);
  }

  /** Adds a listener for deleted Threads. The version is above all versions of the Thread. */
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
