import type { MigrationInterface, QueryRunner } from 'typeorm';
import { readSql } from '#platform';

export class Folders1763700000007 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(readSql(import.meta.dirname, '0007-folders.sql'));
  }

  async down(): Promise<void> {
    throw new Error('A migration has no way back: restore the database.');
  }
}
