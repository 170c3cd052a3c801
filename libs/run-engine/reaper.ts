import type { Pool } from 'pg';
import { causeWord, type Command, type FailureCause, type RejectionCode } from '#domain';
import type { CommandHandler, CommandResult, LoadedThread } from '#event-store';
import { ADVISORY_LOCKS, isDatabaseUnavailable, LeaderLoop, namedStatement, type Logger } from '#platform';

const FIND_DUE_RUNS = namedStatement(import.meta.dirname, 'find-due-runs.sql');

const FIND_OPEN_STEP = namedStatement(import.meta.dirname, 'find-open-step.sql');

const FIND_WORK_ITEM = 'select from run_work where run_id = $1';

const MAX_INTERVAL_MS = 500;
const BATCH = 100;
/** The number of Runs handled at the same time. Each takes a connection of the pool, which other work needs too. */
const AT_ONCE = 4;
/** How long a Run that could not be handled is skipped, so that it does not block others. */
const SET_ASIDE_MS = 30_000;
/** The most reads of one Run's stream per look. Late deltas or new messages may change its version meanwhile. */
const READS = 5;

export interface ReaperOptions {
  pool: Pool;
  handler: Pick<CommandHandler, 'handle'>;
  /** Returns whether the queue is paused or unavailable. No queue time passes then. */
  isPaused: () => Promise<boolean>;
  leaseMs: number;
  logger: Logger;
  now?: () => number;
}

const WITHOUT_RUN: RejectionCode[] = ['thread_missing', 'run_not_live'];

type ReclaimRun = Extract<Command, { type: 'reclaim_run' }>;

interface OpenStepRow {
  version: number;
  openStep: number | null;
  openTool: string | null;
}

interface DueRun {
  runId: string;
  threadId: string;
  state: 'leased' | 'ready' | 'waiting';
  dispatch: number;
  attempt: number;
  holder: string | null;
  workOver: boolean;
}

/**
 * Reclaims Runs of lost workers, and expires Runs after their time limit. Level-triggered over `run_work`: the next look finds
 * the Runs that this one did not reach. Each append checks by the database's clock that the Run is still due.
 */
export class Reaper {
  /** Until when Runs are skipped that could not be handled. */
  private readonly setAside = new Map<string, number>();
  private readonly now: () => number;

  constructor(private readonly options: ReaperOptions) {
    this.now = options.now ?? (() => performance.now());
  }

  /** Looks once. Returns after how many milliseconds the next look is due. Throws DatabaseUnavailable, and what the pool throws. */
  async reap(signal: AbortSignal): Promise<number> {
    const { pool, isPaused, leaseMs } = this.options;
    for (const [runId, until] of this.setAside) if (until <= this.now()) this.setAside.delete(runId);
    const values = [await isPaused(), [...this.setAside.keys()], BATCH];
    const { rows } = await pool.query<DueRun>({ ...FIND_DUE_RUNS, values });
    const queue = [...rows];
    const work = async (): Promise<void> => {
      for (let due = queue.shift(); due !== undefined && !signal.aborted; due = queue.shift())
        await this.handleDue(due);
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
    return rows.length === BATCH ? 0 : Math.min(MAX_INTERVAL_MS, leaseMs / 4);
  }

  /**
   * Reclaims a Run from a lost worker, and names the step that the worker had begun. If a late delta of that worker comes between
   * the read and the append, it reads the step again. After `READS` reads, the next look decides.
   */
  private async reclaim({ threadId, runId, attempt, holder }: DueRun, command: ReclaimRun): Promise<CommandResult> {
    const { pool, handler } = this.options;
    for (let reads = 1; ; reads++) {
      const { rows } = await pool.query<OpenStepRow>({ ...FIND_OPEN_STEP, values: [threadId, runId, attempt] });
      const { version = 0, openStep = null, openTool = null } = rows[0] ?? {};
      const cause = lostWorker(holder, openTool ?? (openStep ? `model step ${openStep}` : null));
      const commands = ifStill(version, { ...command, openStep: openStep ?? undefined, cause });
      const result = await handler.handle({ threadId, commands, due: { runId, attempt } });
      if (result.outcome !== 'unchanged' || reads === READS) return result;
    }
  }

  private async handleDue(due: DueRun): Promise<void> {
    const { pool, handler, logger } = this.options;
    const { runId, threadId, attempt, holder } = due;
    try {
      const command = commandFor(due);
      const result =
        command.type === 'reclaim_run'
          ? await this.reclaim(due, command)
          : await handler.handle({ threadId, commands: [command], due: { runId, attempt } });
      if (result.outcome === 'appended' && command.type === 'reclaim_run') {
        logger.warn({ threadId, runId, attempt, holder }, 'lease expired; run reclaimed');
      }
      // Most rejections mean that the Run was renewed or has changed meanwhile. A row without a Run is an error.
      if (result.outcome !== 'rejected' || !WITHOUT_RUN.includes(result.rejection.rejected)) return;
      // The Run may just have ended, which deletes its row.
      const { rows } = await pool.query(FIND_WORK_ITEM, [runId]);
      if (rows.length === 0) return;
      logger.error({ ...due, rejected: result.rejection.rejected }, 'work item has no live run');
    } catch (error) {
      if (isDatabaseUnavailable(error)) throw error;
      logger.error({ err: error, ...due }, 'due run could not be handled');
    }
    this.setAside.set(runId, this.now() + SET_ASIDE_MS);
  }
}

function lostWorker(holder: string | null, step: string | null): FailureCause {
  return {
    source: 'worker',
    name: causeWord(holder ?? 'unknown'),
    ...(step === null ? {} : { step: causeWord(step) }),
  };
}

/** Returns a function that makes the command, or none if the stream has another version. */
function ifStill(version: number, command: Command) {
  return (thread: LoadedThread): Command[] => (thread.version === version ? [command] : []);
}

function commandFor({ state, runId, dispatch, attempt, workOver }: DueRun): Command {
  if (state === 'leased' && !workOver) return { type: 'reclaim_run', runId, attempt, jitter: Math.random() };
  const limit = state === 'leased' ? 'work' : state === 'ready' ? 'queue' : 'wait';
  return { type: 'expire_run', runId, limit, dispatch, attempt };
}

/** Creates the loop that runs the reaper while this process leads. */
export function reaperLoop(reaper: Reaper, options: { databaseUrl: string; logger: Logger }): LeaderLoop {
  return new LeaderLoop({
    ...options,
    lockId: ADVISORY_LOCKS.reaper,
    name: 'reaper',
    tick: (signal) => reaper.reap(signal),
  });
}
