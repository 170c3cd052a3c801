import type { Pool } from 'pg';
import { HarnessError, NoRoom } from '#agents';
import { failedBy, type Command, type ThreadState } from '#domain';
import { nameOf, type CommandHandler, type RunJob, type ThreadWithTranscript } from '#event-store';
import { isDatabaseUnavailable, namedStatement } from '#platform';
import { limitsHook, type LimitedClaim } from '#run-queue';
import { TRANSCRIPT_BOUNDS } from './bounded-transcript.ts';
import { bootRun, liveRun, type BootParts } from './boot.ts';
import { causeOf } from './cause-of.ts';
import { Circuits, ProviderFailing } from './circuits.ts';
import { Claim } from './claim.ts';
import type { LeaseKeeper } from './lease-keeper.ts';
import type { RunExecution } from './run-execution.ts';
import { delayWithoutRoom, RunRoom, type RunMemory } from './run-room.ts';
import { tracedRun } from './traced-steps.ts';

const SKIP_DELAY = namedStatement(import.meta.dirname, 'skip-delay.sql');

export interface RunEngineOptions extends Omit<BootParts, 'circuits'> {
  handler: CommandHandler;
  pool: Pool;
  leases: LeaseKeeper;
  memory: RunMemory;
  /** Enqueues a Run that became ready without an append. */
  enqueueSoon: (job: RunJob) => void;
  /** Called when a Run of the organization waits for a concurrency limit. */
  onLimited: (organizationId: string) => void;
  /** The maximum of claimed Runs for an organization without its own limit; null: all slots. */
  slotsPerOrganization: () => Promise<number | null>;
  /** Whether the queue is paused. */
  isPaused: () => Promise<boolean>;
  leaseMs: number;
}

/** Executes Runs from the queue: claim, boot, steps, end. */
export class RunEngine {
  private readonly draining = new AbortController();
  private readonly options: RunEngineOptions & BootParts;

  constructor(options: RunEngineOptions) {
    this.options = { ...options, circuits: new Circuits(options) };
  }

  /**
   * Claims the Run, if the job is still current. Works on it until it ends, waits for a person, or is claimed by
   * another worker. Throws only if the database is unavailable before the claim.
   */
  async executeJob(job: RunJob): Promise<void> {
    if (this.draining.signal.aborted || (await this.options.isPaused())) return;
    const claim = await this.claim(job);
    if (claim === null) return;
    const { leases, logger } = this.options;
    const claimedAt = performance.now();
    leases.hold(claim);
    try {
      await tracedRun(claim, () => this.work(claim));
    } catch (error) {
      // The reaper reclaims each Run whose lease ends.
      if (!claim.isLost) logger.error({ err: error, ...claim.names }, 'end of claim not stored; its lease will expire');
    } finally {
      claim.end();
      leases.release(claim);
    }
    logger.info({ ...claim.names, ms: Math.round(performance.now() - claimedAt), ...leftAs(claim) }, 'run released');
    if (claim.stopReason === 'gone') await this.acknowledge(claim);
  }

  /** Starts the first stage of stopping: begins no new step, and hands each Run over after its step. */
  drain(): void {
    this.draining.abort();
  }

  /** Starts the second stage: cuts the current steps off, and hands their Runs over. */
  cutSteps(): void {
    for (const claim of this.options.leases.claims()) claim.stop('shutdown');
  }

  /** Handles a wake-up: stops the work on the Thread if its claim is gone. */
  wake(threadId: string, version: number): void {
    for (const claim of this.options.leases.claimsOf(threadId)) void claim.recheck(version);
  }

  /** Claims the Run, which is `booting` from then on (docs/adr/0021). Losing the race is normal. */
  private async claim(job: RunJob): Promise<Claim | null> {
    const { handler, holder, leaseMs, logger } = this.options;
    // Counts from before the claim is sent. The database counts the lease from later.
    const leaseUntil = performance.now() + leaseMs;
    const { runId, dispatch } = job;
    const commands: Command[] = [{ type: 'claim_run', runId, dispatch, holder }];
    let limited: LimitedClaim | undefined;
    const hook = async (state: ThreadState) => {
      limited = await this.limitedClaim(state, job);
      return limited && limitsHook(limited);
    };
    const loaded = await this.loadToClaim(job.threadId, leaseUntil);
    const from = loaded?.thread;
    const result = await handler.handle({ threadId: job.threadId, commands, hook, from, giveUpAt: leaseUntil });
    const run = 'thread' in result ? liveRun(result.thread.state, job.runId) : undefined;
    if (!('thread' in result) || run === undefined) {
      logger.debug({ ...job, why: nameOf(result) }, 'run not claimed');
      if (result.outcome === 'refused' && limited) this.options.onLimited(limited.organizationId);
      return null;
    }
    const { thread, events } = result;
    // After a conflict, the claim was made on a newer version.
    const transcript = thread.version - events.length === from?.version ? loaded?.small : null;
    return new Claim(this.options, {
      job,
      attempt: run.attempt,
      thread,
      leaseUntil,
      transcript,
    });
  }

  /** Loads the Thread with its transcript, which saves two statements. The handler loads and retries if that fails. */
  private async loadToClaim(threadId: string, until: number): Promise<ThreadWithTranscript | null> {
    try {
      return await this.options.store.loadWithTranscript(threadId, TRANSCRIPT_BOUNDS, until - performance.now());
    } catch (error) {
      if (isDatabaseUnavailable(error)) return null;
      throw error;
    }
  }

  /** Returns which limits apply, from a copy that is at most 2.5 s old. The claim itself reads how many Runs they allow. */
  private async limitedClaim(state: ThreadState, job: RunJob): Promise<LimitedClaim | undefined> {
    if (state.lifecycle === 'none') return undefined;
    const { agentId, organizationId } = state;
    const agent = await this.options.catalogue.find(agentId);
    const { maxRuns = null, organizationMaxRuns = null } = agent ?? {};
    const organizationCap = await this.options.slotsPerOrganization();
    const ofOrganization = organizationMaxRuns ?? organizationCap;
    const limits = [...(ofOrganization === null ? [] : [organizationId]), ...(maxRuns === null ? [] : [agentId])];
    return limits.length === 0 ? undefined : { ...job, organizationId, agentId, limits, organizationCap };
  }

  private async work(claim: Claim): Promise<void> {
    const { state } = claim.thread;
    const room = new RunRoom(this.options.memory, state.lifecycle === 'none' ? '' : state.organizationId);
    let execution: RunExecution | null = null;
    try {
      execution = await bootRun(this.options, claim, room, this.draining.signal);
      claim.beginSteps();
      await execution.run();
    } catch (error) {
      const lacksRoom = error instanceof NoRoom && claim.stopReason === null;
      let delayMs = 0;
      if (lacksRoom) {
        this.options.logger.info(claim.names, 'run could not reserve memory');
        const isBooting = execution === null;
        // Releases the transcript.
        execution = null;
        const hasRoom = error.bytes > 0 && (await room.waitInstead(error.bytes, claim.signal));
        // A boot reserves memory several times. One success says little about the others, so it must not return immediately.
        if ((!hasRoom || isBooting) && claim.stopReason === null) delayMs = delayWithoutRoom(claim.attempt);
      }
      // A shutdown is the only stop that leaves the claim one last append.
      const isHandedOver = claim.stopReason === 'shutdown' || (lacksRoom && claim.stopReason === null);
      if (isHandedOver) await claim.append([{ ...claim.fence, type: 'hand_over_run', delayMs }]);
      else if (claim.stopReason === null) await this.fail(claim, execution, error);
    } finally {
      room.release();
    }
  }

  /** Stores a failed attempt. The domain's retry policy decides whether the Run fails permanently. */
  private async fail(claim: Claim, execution: RunExecution | null, error: unknown): Promise<void> {
    const known = error instanceof HarnessError;
    const turn = error instanceof ProviderFailing ? error.turn : undefined;
    const { logger } = this.options;
    if (error instanceof ProviderFailing && !error.hasCalled)
      logger.debug({ ...claim.names, ...turn }, 'run waits for its turn to call a failing provider');
    else logger[known ? 'warn' : 'error']({ err: error, ...claim.names }, 'run attempt failed');
    const { retryAfterMs = 0 } = known ? error.more : {};
    const cause = causeOf(error, this.options.holder);
    const failure = failedBy(known ? error.code : 'internal', cause);
    const ofFailure = { error: failure, cause, retryAfterMs, turn, jitter: Math.random() };
    const command: Command = { ...claim.fence, type: 'fail_run', ...ofFailure };
    if (execution === null) return claim.append([command]);
    try {
      await execution.store(command);
    } catch (cannotStore) {
      if (claim.isLost) throw cannotStore;
      // The pending facts may be the ones that cannot be stored.
      await claim.append([command]);
    }
  }

  /**
   * Makes the Run ready that interrupted this one. It waits at most 2 s for this worker to stop
   * (docs/spec/decisions.md#when-busy).
   */
  private async acknowledge({ job, names }: Claim): Promise<void> {
    const { store, pool, enqueueSoon, logger } = this.options;
    try {
      const thread = await store.load(job.threadId);
      const next = thread?.state.lifecycle === 'active' ? thread.state.runs[0] : undefined;
      const waits = next?.status === 'queued' && next.id !== job.runId && next.attempt === 0 && next.delayMs > 0;
      if (!waits) return;
      const { rows } = await pool.query<RunJob>({ ...SKIP_DELAY, values: [next.id] });
      rows.forEach(enqueueSoon);
    } catch (error) {
      logger.debug({ err: error, ...names }, 'interrupt acknowledgement failed');
    }
  }
}

/** Returns the status of a Run when its worker releases it, and the reason if the work was stopped. */
function leftAs({ thread, job, stopReason }: Claim): { status: string; stopped?: string } {
  return {
    status: liveRun(thread.state, job.runId)?.status ?? 'ended',
    ...(stopReason !== null && { stopped: stopReason }),
  };
}
