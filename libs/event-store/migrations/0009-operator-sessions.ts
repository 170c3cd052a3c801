import type { MigrationInterface, QueryRunner } from 'typeorm';
import { readSql } from '#platform';

export class OperatorSessions1763700000009 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(readSql(import.meta.dirname, '0009-operator-sessions.sql'));
  }

  async down(): Promise<void> {
    throw new Error('A migration has no way back: restore the database.');
  }
}
