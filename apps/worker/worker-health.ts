import { wakeupsPart, type LiveBus } from '#live';
import { databasePart, HealthCheck, partStatus, type Database, type PolicyWatch, type Readiness } from '#platform';
import type { WorkerLoop } from '#run-engine';
import { queuePart, toolPausePart, type RunQueue } from '#run-queue';

/** The readiness of a worker. It takes no Runs while `away` or `starting`. */
export interface WorkerReadiness extends Readiness {
  database: 'ok' | 'away';
  queue: 'ok' | 'away';
  /** The WorkerStage of its loop. */
  worker: WorkerLoop['stage'];
}

export interface WorkerHealthParts {
  pool: Database['pool'];
  policy: Pick<PolicyWatch, 'isTrusted'>;
  queue: Pick<RunQueue, 'waitingCount' | 'isPausedByTool'>;
  bus: Pick<LiveBus, 'isUp'>;
  loop: Pick<WorkerLoop, 'stage'>;
}

/** Checks whether this process executes Runs. */
export class WorkerHealth {
  private readonly parts: HealthCheck<'database' | 'queue' | 'toolPause' | 'wakeups'>;
  private readonly loop: WorkerHealthParts['loop'];

  constructor({ pool, policy, queue, bus, loop }: WorkerHealthParts) {
    this.loop = loop;
    this.parts = new HealthCheck({
      database: databasePart(pool, policy, 'no Run can be claimed; claimed Runs are lost when their leases end.'),
      queue: queuePart(queue, 'no Run is claimed until it answers; Runs under way continue.'),
      toolPause: toolPausePart(queue),
      wakeups: wakeupsPart(bus, 'interrupts reach this worker within a second instead of immediately.'),
    });
  }

  async check(): Promise<WorkerReadiness> {
    const { stage } = this.loop;
    const parts = await this.parts.look();
    const { database, queue } = parts;
    const reasons = Object.values(parts).flatMap(({ reason }) => reason ?? []);
    if (stage === 'idle') reasons.unshift('The worker does not take Runs yet.');
    else if (stage !== 'running') reasons.unshift('The worker is stopping and takes no more Runs.');
    const status = statusOf(stage, database.works, reasons);
    return { status, database: partStatus(database), queue: partStatus(queue), worker: stage, reasons };
  }
}

function statusOf(stage: WorkerLoop['stage'], database: boolean, reasons: readonly string[]): Readiness['status'] {
  if (stage === 'idle') return 'starting';
  if (stage !== 'running') return 'stopping';
  if (!database) return 'away';
  return reasons.length > 0 ? 'degraded' : 'ready';
}
