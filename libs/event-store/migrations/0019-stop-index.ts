import type { MigrationInterface, QueryRunner } from 'typeorm';
import { readSql } from '#platform';

export class StopIndex1763700000019 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(readSql(import.meta.dirname, '0019-stop-index.sql'));
  }

  async down(): Promise<void> {
    throw new Error('A migration has no way back: restore the database.');
  }
}
