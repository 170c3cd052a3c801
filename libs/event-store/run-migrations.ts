import { DataSource, type MigrationInterface, type QueryRunner } from 'typeorm';
import { poolSettings, type DatabaseOptions } from '#platform';
import type { Migration } from './migrations.ts';

/** Runs the migrations that the database lacks, each in its own transaction. Returns their names. */
export async function runMigrations(options: DatabaseOptions, migrations: readonly Migration[]): Promise<string[]> {
  const dataSource = new DataSource({
    type: 'postgres',
    url: options.url,
    poolErrorHandler: () => undefined, // The query reports it.
    migrations: migrations.map(toClass),
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

/** Returns the migration as a class, because TypeORM takes classes. */
function toClass({ name, text }: Migration): new () => MigrationInterface {
  return class implements MigrationInterface {
    readonly name = name;

    async up(runner: QueryRunner): Promise<void> {
      await runner.query(text);
    }

    async down(): Promise<void> {
      throw new Error('A migration cannot be undone; restore a backup.');
    }
  };
}
