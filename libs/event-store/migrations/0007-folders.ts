import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { MigrationInterface, QueryRunner } from 'typeorm';

export class Folders1763700000007 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(readFileSync(join(import.meta.dirname, '0007-folders.sql'), 'utf8'));
  }

  async down(): Promise<void> {
    throw new Error('A migration has no way back: restore the database.');
  }
}
