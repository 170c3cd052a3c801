import type { MigrationInterface, QueryRunner } from 'typeorm';
import { readSql } from '#platform';

export class DatabaseRoles1763700000016 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(readSql(import.meta.dirname, '0016-database-roles.sql'));
  }

  async down(): Promise<void> {
    throw new Error('A migration has no way back: restore the database.');
  }
}
