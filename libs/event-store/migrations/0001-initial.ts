import type { MigrationInterface, QueryRunner } from 'typeorm';
import { readSql } from '#platform';

export class Initial1763700000001 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(readSql(import.meta.dirname, '0001-initial.sql'));
  }

  async down(): Promise<void> {
    throw new Error('The first migration has no way back: drop the database.');
  }
}
