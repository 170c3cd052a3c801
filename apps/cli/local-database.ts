import { migrate } from '#event-store';
import { loadConfig } from '#platform';
import { migrateInstallation } from '#run-queue';
import type { AdminClient } from './admin-client.ts';
import { asCommandError } from './database-errors.ts';
import { findDatabaseUrl } from './database-url.ts';
import { openLocalClient } from './local-client.ts';
import type { Env } from './service-address.ts';

// All that works on the database directly loads Nest and TypeORM: import this only when it is needed.

/**
 * Returns which migrations it took. With the owner's URL, it also gives the user of DATABASE_URL the rights of a process.
 * Throws CommandError.
 */
export async function migrateDatabase(env: Env, ownerUrl?: string): Promise<string[]> {
  const appUrl = await findUrl(env);
  const migrating =
    ownerUrl === undefined
      ? migrate(appUrl)
      : migrateInstallation({ ownerUrl, appUrl, queueUrl: loadConfig(env).QUEUE_URL });
  return migrating.catch((error: unknown) => {
    throw asCommandError(error, ownerUrl ?? appUrl);
  });
}

/** Throws CommandError. */
export async function openLocal(env: Env): Promise<AdminClient> {
  return openLocalClient(await findUrl(env));
}

async function findUrl(env: Env): Promise<string> {
  return findDatabaseUrl(env).catch((error: unknown) => {
    throw asCommandError(error);
  });
}
