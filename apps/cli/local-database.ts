import { migrate } from '#event-store';
import type { AdminClient } from './admin-client.ts';
import { asCommandError } from './database-errors.ts';
import { findDatabaseUrl } from './database-url.ts';
import { openLocalClient } from './local-client.ts';
import type { Env } from './service-address.ts';

// All that works on the database directly loads Nest and TypeORM: import this only when it is needed.

/** Answers which migrations it took. Throws CommandError. */
export async function migrateDatabase(env: Env): Promise<string[]> {
  const url = await findUrl(env);
  return migrate(url).catch((error: unknown) => {
    throw asCommandError(error, url);
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
