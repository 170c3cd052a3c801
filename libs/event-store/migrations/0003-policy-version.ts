import type { MigrationInterface, QueryRunner } from 'typeorm';
import { readSql } from '#platform';

export class PolicyVersion1763700000003 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(readSql(import.meta.dirname, '0003-policy-version.sql'));
  }

  async down(): Promise<void> {
    throw new Error('A migration has no way back: restore the database.');
  }
}
