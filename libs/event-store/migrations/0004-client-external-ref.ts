import type { MigrationInterface, QueryRunner } from 'typeorm';
import { readSql } from '#platform';

export class ClientExternalRef1763700000004 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(readSql(import.meta.dirname, '0004-client-external-ref.sql'));
  }

  async down(): Promise<void> {
    throw new Error('A migration has no way back: restore the database.');
  }
}
