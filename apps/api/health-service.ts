import type { RateLimiter } from '#access';
import { wakeupsPart, type LiveBus } from '#live';
import { databasePart, HealthCheck, partStatus, type Database, type PolicyWatch, type Readiness } from '#platform';
import { queuePart, toolPausePart, type RunQueue } from '#run-queue';
import { metrics } from './metrics.ts';

/** The status is 'away' only without PostgreSQL. If another part fails, requests still work and it is 'degraded'. */
export interface Health extends Readiness {
  database: 'ok' | 'away';
  queue: 'ok' | 'away';
}

export interface HealthServiceParts {
  pool: Database['pool'];
  policy: Pick<PolicyWatch, 'isTrusted'>;
  queue: Pick<RunQueue, 'waitingCount' | 'isPausedByTool'>;
  bus: Pick<LiveBus, 'isUp'>;
  limiter: Pick<RateLimiter, 'answers'>;
}

/** Checks whether this process can work. Only the database is required, because the queue carries hints. */
export class HealthService {
  /** Whether the process is shutting down. */
  stopping = false;
  private readonly parts: HealthCheck<'database' | 'queue' | 'toolPause' | 'wakeups' | 'rateLimits'>;

  constructor({ pool, policy, queue, bus, limiter }: HealthServiceParts) {
    this.parts = new HealthCheck({
      database: databasePart(pool, policy, 'no request can be answered.'),
      queue: queuePart(queue, 'requests are accepted and stored; Runs start late, or when the queue is back.'),
      toolPause: toolPausePart(queue),
      wakeups: wakeupsPart(bus, 'streams poll every 2 s, and interrupts reach workers within 1 s.'),
      rateLimits: {
        name: 'The rate limit store does not answer',
        means: 'each API process admits its share of each budget.',
        works: () => limiter.answers(),
        found: (works) => metrics.rateLimitStoreUp.set(Number(works)),
      },
    });
  }

  async check(): Promise<Health> {
    const parts = await this.parts.look();
    const { database, queue } = parts;
    const reasons = Object.values(parts).flatMap(({ reason }) => reason ?? []);
    if (this.stopping) reasons.unshift('Shutting down: finishing in-flight requests.');
    const status = this.stopping ? 'stopping' : !database.works ? 'away' : reasons.length > 0 ? 'degraded' : 'ready';
    return { status, database: partStatus(database), queue: partStatus(queue), reasons };
  }
}
