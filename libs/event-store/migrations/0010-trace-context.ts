import type { MigrationInterface, QueryRunner } from 'typeorm';
import { readSql } from '#platform';

export class TraceContext1763700000010 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(readSql(import.meta.dirname, '0010-trace-context.sql'));
  }

  async down(): Promise<void> {
    throw new Error('A migration has no way back: restore the database.');
  }
}
