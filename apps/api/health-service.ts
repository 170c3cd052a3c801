import { setTimeout as sleep } from 'node:timers/promises';
import type { Pool } from 'pg';

export interface Health {
  /** `degraded`: everything is accepted and stored; Runs start late. `away`: no request can be answered. */
  status: 'ready' | 'degraded' | 'away';
  database: 'ok' | 'away';
  queue: 'ok' | 'away';
}

/** How long either may take to answer. */
const LIMIT_MS = 1_000;

/** Whether this process can do its work. Only the database is needed for that: the queue carries hints. */
export class HealthService {
  constructor(
    private readonly pool: Pool,
    private readonly askQueue: () => Promise<unknown>,
  ) {}

  async check(): Promise<Health> {
    const [database, queue] = await Promise.all([answers(this.pool.query('select 1')), answers(this.askQueue())]);
    const status = database === 'away' ? 'away' : queue === 'away' ? 'degraded' : 'ready';
    return { status, database, queue };
  }
}

async function answers(asked: Promise<unknown>): Promise<'ok' | 'away'> {
  const answered = asked.then(
    () => 'ok' as const,
    () => 'away' as const,
  );
  return Promise.race([answered, sleep(LIMIT_MS, 'away' as const, { ref: false })]);
}
