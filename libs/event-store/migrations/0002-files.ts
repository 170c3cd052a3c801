import type { MigrationInterface, QueryRunner } from 'typeorm';
import { readSql } from '#platform';

export class Files1763700000002 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(readSql(import.meta.dirname, '0002-files.sql'));
  }

  async down(): Promise<void> {
    throw new Error('A migration has no way back: restore the database.');
  }
}
