import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { MigrationInterface, QueryRunner } from 'typeorm';

export class ConcurrencyLimits1763700000006 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(readFileSync(join(import.meta.dirname, '0006-concurrency-limits.sql'), 'utf8'));
  }

  async down(): Promise<void> {
    throw new Error('A migration has no way back: restore the database.');
  }
}
