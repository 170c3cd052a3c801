import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { MigrationInterface, QueryRunner } from 'typeorm';

export class TraceContext1763700000010 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(readFileSync(join(import.meta.dirname, '0010-trace-context.sql'), 'utf8'));
  }

  async down(): Promise<void> {
    throw new Error('A migration has no way back: restore the database.');
  }
}
