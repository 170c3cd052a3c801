import type { Pool, PoolClient } from 'pg';
import type { AgentCatalogue } from '#agents';
import type { BulkAction } from '#contract';
import { isDatabaseUnavailable, namedStatement, queryTimeout, type Logger } from '#platform';
import type { Threads } from '#threads';
import type { Actor } from '../audit.ts';
import { cancelRun, retryRun, type RunPlace } from '../change-run.ts';
import { AdminRefused } from '../refused.ts';

const LEASE_ACTION = namedStatement(import.meta.dirname, 'lease-action.sql');
const NEXT_RUNS = namedStatement(import.meta.dirname, 'next-runs.sql');

/** How often a process looks for bulk actions of processes that ended, milliseconds. */
const POLL_MS = 3_000;
/** How long other processes leave a bulk action to the one that works on it, milliseconds. Renewed after each batch. */
const LEASE_MS = 5_000;
/** Runs between two looks at whether an operator has stopped the bulk action. */
const BATCH = 20;

export interface BulkRunnerParts {
  pool: Pool;
  threads: Threads;
  agents: AgentCatalogue;
  logger: Logger;
}

interface LeasedAction {
  id: string;
  action: BulkAction['action'];
  actorKind: Actor['kind'];
  actorId: string;
  actorName: string;
}

type NextRun = Pick<RunPlace, 'runId' | 'threadId'> & { agentId: string | null; organizationId: string | null };

/** Another process has changed this Run of the bulk action. */
class ChangedBefore extends Error {}

/**
 * Changes the Runs of bulk actions, one after another (docs/adr/0043). A Run, its outcome and its audit entry are changed in one
 * transaction. So no Run is changed twice, whichever process continues a bulk action, and two at the same time only repeat reads.
 */
export class BulkRunner {
  private readonly stopping = new AbortController();
  private working: Promise<void> | null = null;
  private isNudged = false;
  private timer: NodeJS.Timeout | undefined;

  constructor(private readonly parts: BulkRunnerParts) {}

  /** Also continues the bulk actions of processes that ended: now, and whenever one is found. */
  start(): void {
    this.timer ??= setInterval(() => this.nudge(), POLL_MS).unref();
    this.nudge();
  }

  /** Works on the running bulk actions now. */
  nudge(): void {
    if (this.stopping.signal.aborted) return;
    this.isNudged = true;
    this.working ??= this.work().finally(() => {
      this.working = null;
      if (this.isNudged) this.nudge();
    });
  }

  /** Ends after the Run in progress. Another process continues. */
  async stop(): Promise<void> {
    this.stopping.abort();
    clearInterval(this.timer);
    await this.working;
  }

  private async work(): Promise<void> {
    const { pool, logger } = this.parts;
    try {
      while (this.isNudged) {
        this.isNudged = false;
        while (!this.stopping.signal.aborted) {
          const { rows } = await pool.query<LeasedAction>({ ...LEASE_ACTION, values: [LEASE_MS] });
          if (rows[0] === undefined) break;
          await this.changeAll(rows[0]);
        }
      }
    } catch (error) {
      if (!isDatabaseUnavailable(error)) logger.error({ err: error }, 'bulk action interrupted');
    }
  }

  private async changeAll(action: LeasedAction): Promise<void> {
    const { pool, logger } = this.parts;
    for (;;) {
      const { rows } = await pool.query<NextRun>({ ...NEXT_RUNS, values: [action.id, BATCH] });
      if (rows.length === 0) break;
      for (const run of rows) {
        if (this.stopping.signal.aborted) return this.release(action.id);
        await this.changeOne(action, run);
      }
      const renewed = await pool.query(
        `update bulk_actions set leased_until = now() + $2 * interval '1 millisecond' where id = $1 and state = 'running'`,
        [action.id, LEASE_MS],
      );
      if (renewed.rowCount === 0) return;
    }
    await pool.query(`update bulk_actions set state = 'done', ended_at = now() where id = $1 and state = 'running'`, [
      action.id,
    ]);
    logger.info({ bulkActionId: action.id, action: action.action }, 'bulk action done');
  }

  private async release(id: string): Promise<void> {
    await this.parts.pool.query('update bulk_actions set leased_until = null where id = $1', [id]);
  }

  private async changeOne(action: LeasedAction, run: NextRun): Promise<void> {
    const { runId, threadId, agentId, organizationId } = run;
    try {
      if (agentId === null || organizationId === null) throw new AdminRefused('not_found', 'The Thread is deleted.');
      const place = { runId, threadId, agentId, organizationId };
      const changing = {
        actor: { kind: action.actorKind, id: action.actorId, name: action.actorName },
        details: { bulkActionId: action.id },
        within: (client: PoolClient, newRunId: string | null, timeoutMs?: number) =>
          noteDone(client, [action.id, runId, newRunId], timeoutMs),
      };
      if (action.action === 'cancel') await cancelRun(this.parts, place, changing);
      else await retryRun(this.parts, place, changing);
    } catch (error) {
      if (error instanceof ChangedBefore) return;
      await this.noteNotDone(action.id, runId, error);
    }
  }

  /** Throws an error that says nothing about the Run. */
  private async noteNotDone(id: string, runId: string, error: unknown): Promise<void> {
    if (isDatabaseUnavailable(error)) throw error;
    const { pool, logger } = this.parts;
    const isRefused = error instanceof AdminRefused;
    // One Run must not keep the others from being changed.
    if (!isRefused) logger.error({ err: error, bulkActionId: id, runId }, 'run of a bulk action not changed');
    const reason = isRefused ? error.message : 'An internal error; see the log of the API process.';
    await pool.query(
      `update bulk_action_runs set outcome = 'not_done', reason = $3 where action_id = $1 and run_id = $2 and outcome is null`,
      [id, runId, reason],
    );
  }
}

async function noteDone(client: PoolClient, values: (string | null)[], timeoutMs?: number): Promise<void> {
  const text = `update bulk_action_runs set outcome = 'done', new_run_id = $3
                where action_id = $1 and run_id = $2 and outcome is null`;
  const { rowCount } = await client.query({ text, values, ...queryTimeout(timeoutMs) });
  if (rowCount === 0) throw new ChangedBefore();
}
