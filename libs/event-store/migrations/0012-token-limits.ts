import type { MigrationInterface, QueryRunner } from 'typeorm';
import { readSql } from '#platform';

export class TokenLimits1763700000012 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(readSql(import.meta.dirname, '0012-token-limits.sql'));
  }

  async down(): Promise<void> {
    throw new Error('A migration has no way back: restore the database.');
  }
}
