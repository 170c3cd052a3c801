import { migrate } from '#event-store';
import { ConfigError, databaseAddress, databaseUser, isRedisUrl, openDatabase, throwStartupError } from '#platform';
import { migrateQueue } from './migrate-queue.ts';

export interface Installation {
  /** The URL with the role that owns the tables. */
  ownerUrl: string;
  /** DATABASE_URL: the URL with the role of processes. */
  appUrl: string;
  /** QUEUE_URL, if it is set. */
  queueUrl?: string | undefined;
}

/**
 * Migrates the database as its owner, and the queue if it is in the same database. Grants the role of processes its rights.
 * Returns the applied migrations. The role of QUEUE_URL migrates another database of the queue when processes start. Throws
 * StartError, ConfigError if the URLs do not fit, and what the database throws.
 */
export async function migrateInstallation({ ownerUrl, appUrl, queueUrl = appUrl }: Installation): Promise<string[]> {
  requireOneDatabase(ownerUrl, appUrl);
  const migrated = await migrate(ownerUrl, appUrl);
  const role = isRedisUrl(queueUrl) ? null : databaseUser(queueUrl).name;
  if (role !== null && (await isSameDatabase(queueUrl, appUrl, ownerUrl))) await migrateQueue(ownerUrl, role);
  return migrated;
}

/** Compares the names of the databases. The servers may differ, because processes may connect through a pooler. */
function requireOneDatabase(ownerUrl: string, appUrl: string): void {
  const [ofOwner, ofApp] = [databaseAddress(ownerUrl).database, databaseAddress(appUrl).database];
  if (ofOwner === ofApp) return;
  const cure = 'name the same database in both';
  throw new ConfigError(`The owner's URL names the database "${ofOwner}" and DATABASE_URL names "${ofApp}"; ${cure}.`);
}

/** Asks the servers if the URLs differ: a server may have several names, and be behind a pooler. */
async function isSameDatabase(queueUrl: string, appUrl: string, ownerUrl: string): Promise<boolean> {
  if (queueUrl === appUrl) return true;
  const [ofQueue, ofOwner] = await Promise.all([identityOf(queueUrl), identityOf(ownerUrl)]);
  return ofQueue === ofOwner;
}

/** Returns a text that no other database of any server has. Throws StartError. */
async function identityOf(url: string): Promise<string> {
  try {
    const database = await openDatabase({ url, applicationName: 'spool migrate', maxConnections: 1 });
    try {
      const { rows } = await database.pool.query<{ identity: string }>(
        `select format('%s %s', system_identifier, (select oid from pg_database where datname = current_database()))
                as identity
         from pg_control_system()`,
      );
      return rows[0]!.identity;
    } finally {
      await database.close();
    }
  } catch (error) {
    return throwStartupError(error, url);
  }
}
