import type { MigrationInterface, QueryRunner } from 'typeorm';
import { readSql } from '#platform';

export class ExternalRefs1763700000011 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(readSql(import.meta.dirname, '0011-external-refs.sql'));
  }

  async down(): Promise<void> {
    throw new Error('A migration has no way back: restore the database.');
  }
}
