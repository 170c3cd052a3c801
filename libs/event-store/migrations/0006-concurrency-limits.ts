import type { MigrationInterface, QueryRunner } from 'typeorm';
import { readSql } from '#platform';

export class ConcurrencyLimits1763700000006 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(readSql(import.meta.dirname, '0006-concurrency-limits.sql'));
  }

  async down(): Promise<void> {
    throw new Error('A migration has no way back: restore the database.');
  }
}
