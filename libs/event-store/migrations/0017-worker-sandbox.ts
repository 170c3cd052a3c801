import type { MigrationInterface, QueryRunner } from 'typeorm';
import { readSql } from '#platform';

export class WorkerSandbox1763700000017 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(readSql(import.meta.dirname, '0017-worker-sandbox.sql'));
  }

  async down(): Promise<void> {
    throw new Error('A migration has no way back: restore the database.');
  }
}
