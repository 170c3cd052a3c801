import type { MigrationInterface, QueryRunner } from 'typeorm';
import { readSql } from '#platform';

export class RunLists1763700000008 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(readSql(import.meta.dirname, '0008-run-lists.sql'));
  }

  async down(): Promise<void> {
    throw new Error('A migration has no way back: restore the database.');
  }
}
