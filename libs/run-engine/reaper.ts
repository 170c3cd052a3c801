import type { Pool } from 'pg';
import type { Command, RejectionCode } from '#domain';
import type { CommandHandler, CommandResult, LoadedThread } from '#event-store';
import { ADVISORY_LOCKS, isDatabaseUnavailable, LeaderLoop, namedStatement, type Logger } from '#platform';

const FIND_DUE_RUNS = namedStatement(import.meta.dirname, 'find-due-runs.sql');

const FIND_OPEN_STEP = namedStatement(import.meta.dirname, 'find-open-step.sql');

const FIND_WORK_ROW = 'select from run_work where run_id = $1';

const MAX_INTERVAL_MS = 500;
const BATCH = 100;
/** Of the pool's connections, which the process needs for other things too. */
const AT_ONCE = 4;
/** A Run that could not be dealt with must not keep the others from being dealt with. */
const SET_ASIDE_MS = 30_000;
/** How often the stream of one Run is read at most, because late deltas or new messages may move it on. */
const READS = 5;

export interface ReaperOptions {
  pool: Pool;
  handler: Pick<CommandHandler, 'handle'>;
  /** While the queue is paused, or away, it is not only a worker that Runs wait for: none waits too long. */
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
 * Takes back the Runs of lost workers and ends those whose time limit has passed. Level-triggered over `run_work`: what it
 * does not get to is still there at the next look, and each append checks by the database's clock that it is still due.
 */
export class Reaper {
  /** Until when Runs are left alone that could not be dealt with. */
  private readonly setAside = new Map<string, number>();
  private readonly now: () => number;

  constructor(private readonly options: ReaperOptions) {
    this.now = options.now ?? (() => performance.now());
  }

  /** One look; answers in how many milliseconds the next is wanted. Throws DatabaseUnavailable, or what the pool throws. */
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
   * Takes a Run back from a lost worker, and names the step that it had begun. A late delta of that worker may come between the
   * read of the step and the append: then the step is read again, and after `READS` times the next look decides.
   */
  private async reclaim({ threadId, runId, attempt }: DueRun, command: ReclaimRun): Promise<CommandResult> {
    const { pool, handler } = this.options;
    for (let reads = 1; ; reads++) {
      const { rows } = await pool.query<OpenStepRow>({ ...FIND_OPEN_STEP, values: [threadId, runId, attempt] });
      const { version = 0, openStep } = rows[0] ?? {};
      const commands = ifStill(version, { ...command, openStep: openStep ?? undefined });
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
      // Most refusals say that it was renewed or moved on meanwhile; a row without its Run says that something is wrong.
      if (result.outcome !== 'rejected' || !WITHOUT_RUN.includes(result.rejection.rejected)) return;
      // The Run may just have ended, and its row with it.
      const { rows } = await pool.query(FIND_WORK_ROW, [runId]);
      if (rows.length === 0) return;
      logger.error({ ...due, rejected: result.rejection.rejected }, 'work item has no live run');
    } catch (error) {
      if (isDatabaseUnavailable(error)) throw error;
      logger.error({ err: error, ...due }, 'due run could not be handled');
    }
    this.setAside.set(runId, this.now() + SET_ASIDE_MS);
  }
}

/** Makes the command, or none if the stream has another version. */
function ifStill(version: number, command: Command) {
  return (thread: LoadedThread): Command[] => (thread.version === version ? [command] : []);
}

function commandFor({ state, runId, dispatch, attempt, workOver }: DueRun): Command {
  if (state === 'leased' && !workOver) return { type: 'reclaim_run', runId, attempt, jitter: Math.random() };
  const limit = state === 'leased' ? 'work' : state === 'ready' ? 'queue' : 'wait';
  return { type: 'expire_run', runId, limit, dispatch, attempt };
}

/** The reaper of this process, which works while it leads. */
export function reaperLoop(reaper: Reaper, options: { databaseUrl: string; logger: Logger }): LeaderLoop {
  return new LeaderLoop({
    ...options,
    lockId: ADVISORY_LOCKS.reaper,
    name: 'reaper',
    tick: (signal) => reaper.reap(signal),
  });
}
