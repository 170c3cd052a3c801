import type { MigrationInterface, QueryRunner } from 'typeorm';
import { readSql } from '#platform';

export class FileUsage1763700000014 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(readSql(import.meta.dirname, '0014-file-usage.sql'));
  }

  async down(): Promise<void> {
    throw new Error('A migration has no way back: restore the database.');
  }
}
