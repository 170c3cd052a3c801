import type { Pool } from 'pg';
import { purgeRateLimits, purgeSessions } from '#access';
import { endThreadsOfDeletedAgents, purgeBulkActions } from '#admin';
import type { CommandHandler, ThreadStore } from '#event-store';
import type { BlobKeeper, FileStore } from '#files';
import { ADVISORY_LOCKS, LeaderLoop, requireDatabaseUrl, type Config, type Logger } from '#platform';

export interface HousekeepingOptions {
  pool: Pool;
  store: ThreadStore;
  handler: CommandHandler;
  files: FileStore;
  blobs: BlobKeeper;
  settings: Pick<Config, 'DRAFT_AGE_MS' | 'IDEMPOTENCY_KEY_AGE_MS' | 'HOUSEKEEPING_MS'>;
}

/** How long one call ends Threads before this process checks that it still leads, milliseconds. */
const END_THREADS_MS = 2_000;

/**
 * Counts files that are older than quotas, deletes expired data (docs/spec/decisions.md#idempotency,
 * docs/spec/decisions.md#limits) and ends the Threads of deleted agents (docs/spec/decisions.md#access). Each chore works in
 * batches.
 */
export class Housekeeping {
  private readonly chores: (() => Promise<boolean>)[];

  constructor(private readonly options: HousekeepingOptions) {
    const { pool, store, handler, files, blobs, settings } = options;
    this.chores = [
      () => store.purgeKeys(settings.IDEMPOTENCY_KEY_AGE_MS),
      () => files.countOldFiles(),
      () => files.purgeDrafts(settings.DRAFT_AGE_MS),
      // After the drafts, whose deletion makes bytes due.
      () => blobs.sweep(),
      () => purgeRateLimits(pool).then(() => false),
      () => purgeSessions(pool).then(() => false),
      () => purgeBulkActions(pool),
      () => endThreadsOfDeletedAgents(pool, handler, END_THREADS_MS),
    ];
  }

  /** Runs one round. Returns the milliseconds until the next one. Throws the first error, after all chores. */
  async tidy(signal: AbortSignal): Promise<number> {
    const failures: unknown[] = [];
    for (const chore of this.chores) {
      try {
        while (!signal.aborted && (await chore()));
      } catch (error) {
        // An unavailable blob store must not stop the other chores.
        failures.push(error);
      }
    }
    if (failures.length > 0) throw failures[0];
    return this.options.settings.HOUSEKEEPING_MS;
  }
}

/** Returns the loop of housekeeping, which works while this process leads. */
export function housekeepingLoop(housekeeping: Housekeeping, config: Config, logger: Logger): LeaderLoop {
  const databaseUrl = requireDatabaseUrl(config);
  const tick = (signal: AbortSignal): Promise<number> => housekeeping.tidy(signal);
  return new LeaderLoop({ databaseUrl, lockId: ADVISORY_LOCKS.housekeeping, name: 'housekeeping', tick, logger });
}
