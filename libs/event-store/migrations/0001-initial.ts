import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { MigrationInterface, QueryRunner } from 'typeorm';

export class Initial1763700000001 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(readFileSync(join(import.meta.dirname, '0001-initial.sql'), 'utf8'));
  }

  async down(): Promise<void> {
    throw new Error('The first migration has no way back: drop the database.');
  }
}
