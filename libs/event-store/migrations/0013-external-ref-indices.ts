import type { MigrationInterface, QueryRunner } from 'typeorm';
import { readSql } from '#platform';

export class ExternalRefIndices1763700000013 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(readSql(import.meta.dirname, '0013-external-ref-indices.sql'));
  }

  async down(): Promise<void> {
    throw new Error('A migration has no way back: restore the database.');
  }
}
