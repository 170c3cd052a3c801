import { setTimeout as sleep } from 'node:timers/promises';
import type { Pool } from 'pg';

export interface Health {
  /**
   * `degraded`: everything is accepted and stored; Runs start late. `away`: no request can be answered. `stopping`: they are
   * all answered, for a while.
   */
  status: 'ready' | 'degraded' | 'away' | 'stopping';
  database: 'ok' | 'away';
  queue: 'ok' | 'away';
}

/** How long either may take to answer. */
const LIMIT_MS = 1_000;

/** Whether this process can do its work. Only the database is needed for that: the queue carries hints. */
export class HealthService {
  /** Whether the process was told to stop. */
  stopping = false;

  constructor(
    private readonly pool: Pool,
    private readonly askQueue: () => Promise<unknown>,
  ) {}

  async check(): Promise<Health> {
    const [database, queue] = await Promise.all([answers(this.pool.query('select 1')), answers(this.askQueue())]);
    return { status: this.statusWith(database, queue), database, queue };
  }

  private statusWith(database: Health['database'], queue: Health['queue']): Health['status'] {
    if (this.stopping) return 'stopping';
    if (database === 'away') return 'away';
    return queue === 'away' ? 'degraded' : 'ready';
  }
}

async function answers(asked: Promise<unknown>): Promise<'ok' | 'away'> {
  const answered = asked.then(
    () => 'ok' as const,
    () => 'away' as const,
  );
  return Promise.race([answered, sleep(LIMIT_MS, 'away' as const, { ref: false })]);
}
