import type { MigrationInterface, QueryRunner } from 'typeorm';
import { readSql } from '#platform';

export class FileIndices1763700000015 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(readSql(import.meta.dirname, '0015-file-indices.sql'));
  }

  async down(): Promise<void> {
    throw new Error('A migration has no way back: restore the database.');
  }
}
