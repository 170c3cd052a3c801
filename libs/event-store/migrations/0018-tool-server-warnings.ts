import type { MigrationInterface, QueryRunner } from 'typeorm';
import { readSql } from '#platform';

export class ToolServerWarnings1763700000018 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(readSql(import.meta.dirname, '0018-tool-server-warnings.sql'));
  }

  async down(): Promise<void> {
    throw new Error('A migration has no way back: restore the database.');
  }
}
