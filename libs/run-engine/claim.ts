import { setTimeout as sleep } from 'node:timers/promises';
import { findLiveRun, openStepAfter, type Command, type RecordedFact, type ThreadState } from '#domain';
import type { CommandHandler, Fence, LoadedThread, RunJob, SmallTranscript, ThreadStore } from '#event-store';
import type { FileChanges, FileRefusal, FileStore, FolderChanges, PreparedFile } from '#files';
import { isDatabaseUnavailable, untilAborted, type Logger } from '#platform';
import { metrics } from './metrics.ts';
import { MAX_ARTIFACTS } from './thread-folder.ts';

/**
 * The reason why the work on a Run stops before the Run ends. `gone`: in the database, the claim no longer holds.
 * `unsure`: the database does not respond, and the lease may be over. After both, nothing may be written. `shutdown`: the
 * claim holds, for one last append.
 */
export type StopReason = 'gone' | 'unsure' | 'shutdown';

/** Ends work that has to stop. Normal, and never logged as an error. */
class ClaimStopped extends Error {
  override name = 'ClaimStopped';

  constructor(readonly reason: StopReason) {
    super(`The claim was stopped: ${reason}.`);
  }
}

/** Reasons to refuse the files of a tool call to which the tool or its model can react. */
const OF_TOOL = ['folder_moved', 'folder_full', 'artifacts_full', 'quota_full'] as const satisfies FileRefusal[];
export type ToolFileRefusal = (typeof OF_TOOL)[number];

const isOfTool = (reason: string): reason is ToolFileRefusal => (OF_TOOL as readonly string[]).includes(reason);

/** An append was refused for its files. Nothing was stored, and the claim holds. */
export class FilesRefused extends Error {
  override name = 'FilesRefused';

  constructor(readonly why: ToolFileRefusal) {
    super(`The files cannot be stored: ${why}.`);
  }
}

export interface ClaimParts {
  handler: CommandHandler;
  store: ThreadStore;
  files: Pick<FileStore, 'inAppend'>;
  /** Checks all claims of the process, and stops those that are lost. */
  leases: { look(): void };
  logger: Logger;
}

export interface ClaimedRunOf {
  job: RunJob;
  attempt: number;
  thread: LoadedThread;
  /** The earliest end of the lease, by `performance.now()`. */
  leaseUntil: number;
  /** The transcript at the claim, if it was read with the Thread. */
  transcript?: SmallTranscript | null | undefined;
}

const UNAVAILABLE_PAUSE_MS = 50;
/**
 * How long `run.started` waits for the facts of the first step, milliseconds. A fast Run stores both in one append. A slow
 * model delays the start by no more than this, so its time is never shown as boot time.
 */
const START_ALONE_AFTER_MS = 20;
/** Each conflict takes all tries of the handler. More conflicts cannot come from other writers alone. */
const MAX_CONFLICTS = 5;

/** A worker's claim on a Run: its fencing token, and the Thread after its last append. */
export class Claim {
  readonly job: RunJob;
  readonly attempt: number;
  thread: LoadedThread;
  leaseUntil: number;
  stopReason: StopReason | null = null;
  private readonly work = new AbortController();
  private readonly lost = new AbortController();
  private writing: Promise<unknown> = Promise.resolve();
  /** The highest version at which the claim is known to hold, and the highest announced version. */
  private heldAt: number;
  private heardOf = 0;
  private checking = false;
  /** The model step with stored text and no stored message. */
  private openStep: number | undefined;
  private hasBooted = false;
  private startTimer: NodeJS.Timeout | undefined;
  private transcript: SmallTranscript | null | undefined;

  constructor(
    private readonly parts: ClaimParts,
    { job, attempt, thread, leaseUntil, transcript }: ClaimedRunOf,
  ) {
    this.transcript = transcript;
    this.job = job;
    this.attempt = attempt;
    this.thread = thread;
    this.heldAt = thread.version;
    this.leaseUntil = leaseUntil;
  }

  /** Aborts when the work has to stop, for any reason. */
  get signal(): AbortSignal {
    return this.work.signal;
  }

  get fence(): Fence {
    return { runId: this.job.runId, attempt: this.attempt };
  }

  /** The fields of each log line about the claim. */
  get names(): Fence & { threadId: string } {
    return { threadId: this.job.threadId, ...this.fence };
  }

  get isLost(): boolean {
    return this.lost.signal.aborted;
  }

  /** Stops the work. The first reason counts, but a claim can be lost at any time. */
  stop(reason: StopReason): void {
    if (this.isLost) return;
    const loses = reason === 'gone' || reason === 'unsure';
    this.end();
    if (this.stopReason === null || loses) this.stopReason = reason;
    const stopped = new ClaimStopped(reason);
    if (loses) metrics.leasesLost.inc({ reason });
    if (loses) this.lost.abort(stopped);
    this.work.abort(stopped);
  }

  /** Returns the transcript that was read with the claim, and forgets it, so that it does not stay in memory. */
  takeTranscript(): SmallTranscript | null {
    const { transcript = null } = this;
    this.transcript = null;
    return transcript;
  }

  /**
   * Ends the boot and begins the first step. The next append carries `run.started`, unless it only hands the Run over. If
   * none comes in time, `run.started` is appended alone, while the step continues.
   */
  beginSteps(): void {
    this.hasBooted = true;
    this.startTimer = setTimeout(() => this.startAlone(), START_ALONE_AFTER_MS);
  }

  /** Cancels the delayed append of `run.started`. */
  end(): void {
    clearTimeout(this.startTimer);
    this.startTimer = undefined;
  }

  /**
   * Appends under the fence, one append after the other. Retries while the database is unavailable, as long as the lease
   * holds. Throws ClaimStopped if the claim is lost, even if the append was stored. Throws FilesRefused.
   */
  append(commands: readonly Command[], added: readonly PreparedFile[] = [], folder?: FolderChanges): Promise<void> {
    const files = added.length > 0 || folder ? { added, folder, maxArtifacts: MAX_ARTIFACTS } : undefined;
    const appended = this.writing.then(() => this.appendNow(commands, files));
    this.writing = appended.catch(() => undefined);
    return appended;
  }

  /** Appends facts of the Run, as `append` does. */
  record(facts: RecordedFact[], added?: readonly PreparedFile[], folder?: FolderChanges): Promise<void> {
    return this.append([{ ...this.fence, type: 'record', facts }], added, folder);
  }

  /**
   * Throws ClaimStopped if the claim is lost. Checks the lease first, because after a stall of the process its work may
   * continue before any timer has fired.
   */
  requireHeld(): void {
    this.parts.leases.look();
    this.lost.signal.throwIfAborted();
  }

  /** Reads. Retries while the database is unavailable, as long as the claim holds. */
  async read<T>(act: () => Promise<T>): Promise<T> {
    for (;;) {
      try {
        return await untilAborted(act(), this.lost.signal);
      } catch (error) {
        if (this.isLost || !isDatabaseUnavailable(error)) throw error;
        await sleep(UNAVAILABLE_PAUSE_MS);
      }
    }
  }

  /** Checks whether the claim still holds at a version of the Thread. Ignores a failure to check. */
  async recheck(version: number): Promise<void> {
    this.heardOf = Math.max(this.heardOf, version);
    if (this.checking) return;
    this.checking = true;
    // Most announced versions are of this claim, and a commit is announced before its append returns.
    await this.writing;
    while (this.heardOf > this.heldAt && !this.isLost) {
      const upTo = this.heardOf;
      const thread = await this.parts.store.load(this.job.threadId).catch(() => undefined);
      if (thread === undefined) break;
      if (this.statusIn(thread?.state) === null) this.stop('gone');
      this.heldAt = Math.max(this.heldAt, upTo);
    }
    this.checking = false;
  }

  /** Appends `run.started` alone. After a failure, the next append carries it again. */
  private startAlone(): void {
    const isDue = (): boolean => this.startTimer !== undefined && this.statusIn(this.thread.state) === 'booting';
    const started = this.writing.then(() => (isDue() ? this.appendNow([], undefined) : undefined));
    this.writing = started.catch((error: unknown) => {
      if (!this.isLost)
        this.parts.logger.warn({ err: error, ...this.names }, 'run start not stored; the next append retries it');
    });
  }

  /** Prepends the start if it is not stored yet. A Run that is only handed over began no step, so it gets none. */
  private withStart(commands: readonly Command[]): readonly Command[] {
    const isHandOver = commands.length === 1 && commands[0]?.type === 'hand_over_run';
    // Only this claim can start the Run, so no newer version of the Thread says otherwise.
    if (!this.hasBooted || isHandOver || this.statusIn(this.thread.state) === 'running') return commands;
    return [{ ...this.fence, type: 'start_run' }, ...commands];
  }

  /** Returns the status of the Run while this claim holds; null once it does not. */
  private statusIn(state: ThreadState | undefined): 'booting' | 'running' | null {
    if (state === undefined || state.lifecycle === 'none') return null;
    const run = findLiveRun(state, this.job.runId);
    if (run?.attempt !== this.attempt) return null;
    return run.status === 'booting' || run.status === 'running' ? run.status : null;
  }

  private async appendNow(commands: readonly Command[], changes: FileChanges | undefined): Promise<void> {
    const { handler, files, logger } = this.parts;
    const { named, openStep } = nameOpenStep(commands, this.openStep);
    const hook = changes && files.inAppend(changes);
    const request = { threadId: this.job.threadId, commands: this.withStart(named), fence: this.fence, hook };
    for (let conflicts = 0; conflicts < MAX_CONFLICTS; conflicts++) {
      this.requireHeld();
      const from = conflicts === 0 ? this.thread : undefined;
      const giveUpAt = this.leaseUntil;
      const result = await untilAborted(handler.handle({ ...request, from, giveUpAt }), this.lost.signal).catch(
        (error: unknown) => this.loseIfUnavailable(error),
      );
      if ('thread' in result) {
        this.thread = result.thread;
        this.openStep = openStep;
        this.heldAt = Math.max(this.heldAt, result.thread.version);
        return;
      }
      if (result.outcome === 'refused') {
        const { reason } = result;
        if (isOfTool(reason)) throw new FilesRefused(reason);
        // `files_refused`: the bytes of its files were already deleted.
        logger.error({ ...this.names, why: reason }, 'append rejected');
        break;
      }
      if (result.outcome !== 'rejected') continue;
      // Losing the Run is normal. A wrong status for the command is not.
      const { rejected: why } = result.rejection;
      if (why === 'illegal_transition') logger.error({ ...this.names, why }, 'append rejected');
      break;
    }
    this.stop('gone');
    throw new ClaimStopped('gone');
  }

  /** Stops the claim if the database was unavailable. Nothing may follow the append, because it is unknown if it was stored. */
  private loseIfUnavailable(error: unknown): never {
    if (!isDatabaseUnavailable(error)) throw error;
    this.stop('unsure');
    throw new ClaimStopped('unsure');
  }
}

/** Names the step that each requeue voids, and returns the step that is open once all commands are stored. */
function nameOpenStep(commands: readonly Command[], before: number | undefined) {
  let openStep = before;
  const named = commands.map((command): Command => {
    if (command.type === 'record') openStep = openStepAfter(command.facts, openStep);
    return command.type === 'fail_run' || command.type === 'hand_over_run' ? { ...command, openStep } : command;
  });
  return { named, openStep };
}
