import { DataSource, type DataSourceOptions } from 'typeorm';
import { poolSettings, type DatabaseOptions } from '#platform';

/** Brings those that are not there yet, each in a transaction of its own, and answers which they were. */
export async function runMigrations(
  options: DatabaseOptions,
  migrations: NonNullable<DataSourceOptions['migrations']>,
): Promise<string[]> {
  const dataSource = new DataSource({
    type: 'postgres',
    url: options.url,
    poolErrorHandler: () => undefined, // told by the query
    migrations,
    migrationsTransactionMode: 'each',
    extra: poolSettings(options),
  });
  await dataSource.initialize();
  try {
    return (await dataSource.runMigrations()).map(({ name }) => name);
  } finally {
    await dataSource.destroy();
  }
}
