import type { RateLimiter } from '#access';
import { wakeupsPart, type LiveBus } from '#live';
import {
  databasePart,
  HealthCheck,
  metrics,
  okOrAway,
  type Database,
  type PolicyWatch,
  type Readiness,
} from '#platform';
import { queuePart, toolPausePart, type RunQueue } from '#run-queue';

/** `away` is without PostgreSQL alone; without anything else requests are answered, and `degraded` says that. */
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

/** Whether this process can do its work. Only the database is needed for that: the queue carries hints. */
export class HealthService {
  /** Whether the process was told to stop. */
  stopping = false;
  private readonly parts: HealthCheck<'database' | 'queue' | 'toolPause' | 'wakeups' | 'rateLimits'>;

  constructor({ pool, policy, queue, bus, limiter }: HealthServiceParts) {
    this.parts = new HealthCheck({
      database: databasePart(pool, policy, 'no request can be answered.'),
      queue: queuePart(queue, 'everything is accepted and stored; Runs start late, or when it is back.'),
      toolPause: toolPausePart(queue),
      wakeups: wakeupsPart(bus, 'streams follow by looking every 2 s, and interrupts reach workers within a second.'),
      rateLimits: {
        name: 'The store of rate limits does not answer',
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
    if (this.stopping) reasons.unshift('The process was told to stop: it answers what still comes, and ends.');
    const status = this.stopping ? 'stopping' : !database.works ? 'away' : reasons.length > 0 ? 'degraded' : 'ready';
    return { status, database: okOrAway(database), queue: okOrAway(queue), reasons };
  }
}
