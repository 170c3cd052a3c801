/**
 * All advisory locks of PostgreSQL with a fixed number. They are in one list because two locks with the same number exclude
 * each other. The previous release uses the numbers of `migrations` and of the leaders too, so these never change.
 */
export const ADVISORY_LOCKS = {
  migrations: 7_215_080,
  dispatcher: 7_215_081,
  reaper: 7_215_082,
  housekeeping: 7_215_083,
  queueRights: 7_215_084,
  fileUsage: 7_215_085,
} as const;
