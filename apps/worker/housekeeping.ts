import type { Pool } from 'pg';
import { purgeRateLimits, purgeSessions } from '#access';
import { endThreadsOfDeletedAgents } from '#admin';
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

/** For so long it works between two looks at whether this process still leads. Milliseconds. */
const END_THREADS_MS = 2_000;

/**
 * Counts files that are older than quotas, removes what is too old (docs/spec/decisions.md#idempotency,
 * docs/spec/decisions.md#limits) and ends the Threads of deleted agents (docs/spec/decisions.md#access): each chore
 * in batches, and again at the next round.
 */
export class Housekeeping {
  private readonly chores: (() => Promise<boolean>)[];

  constructor(private readonly options: HousekeepingOptions) {
    const { pool, store, handler, files, blobs, settings } = options;
    this.chores = [
      () => store.purgeKeys(settings.IDEMPOTENCY_KEY_AGE_MS),
      () => files.countOldFiles(),
      () => files.purgeDrafts(settings.DRAFT_AGE_MS),
      // After the drafts, whose bytes become due then.
      () => blobs.sweep(),
      () => purgeRateLimits(pool).then(() => false),
      () => purgeSessions(pool).then(() => false),
      () => endThreadsOfDeletedAgents(pool, handler, END_THREADS_MS),
    ];
  }

  /** One round; answers in how many milliseconds the next is wanted. Throws the first failure, after all chores. */
  async tidy(signal: AbortSignal): Promise<number> {
    const failures: unknown[] = [];
    for (const chore of this.chores) {
      try {
        while (!signal.aborted && (await chore()));
      } catch (error) {
        // A blob store that is away must not keep keys for ever.
        failures.push(error);
      }
    }
    if (failures.length > 0) throw failures[0];
    return this.options.settings.HOUSEKEEPING_MS;
  }
}

/** The housekeeping of this process, which works while it leads. */
export function housekeepingLoop(housekeeping: Housekeeping, config: Config, logger: Logger): LeaderLoop {
  const databaseUrl = requireDatabaseUrl(config);
  const tick = (signal: AbortSignal): Promise<number> => housekeeping.tidy(signal);
  return new LeaderLoop({ databaseUrl, lockId: ADVISORY_LOCKS.housekeeping, name: 'housekeeping', tick, logger });
}
