import type { MigrationInterface, QueryRunner } from 'typeorm';
import { readSql } from '#platform';

export class Management1763700000005 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(readSql(import.meta.dirname, '0005-management.sql'));
  }

  async down(): Promise<void> {
    throw new Error('A migration has no way back: restore the database.');
  }
}
