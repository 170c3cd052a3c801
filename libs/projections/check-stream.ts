import {
  isKnownEvent,
  isTerminal,
  nextRunStatus,
  RUN_MOVES,
  showEvent,
  threadStatus,
  type RunStatus,
  type StoredEvent,
  type UnknownEvent,
} from '#domain';
import { emptyReplay, replay, type Replay } from './replay.ts';

/**
 * The invariants of docs/reliability.md#invariants that a database can be checked for, and five more.
 * `begin`: a stream begins with `thread.created`, once. `public`: an event is in the log exactly when it shows something.
 * `work`: `run_work` matches the state. `fold`: every event can be folded. `usage`: the file counters of an organization
 * are correct.
 */
export type Invariant =
  | 'I2'
  | 'I3'
  | 'I4'
  | 'I6'
  | 'I7'
  | 'I9'
  | 'I12'
  | 'begin'
  | 'public'
  | 'work'
  | 'fold'
  | 'usage';

export type Report = (invariant: Invariant, message: string) => void;

type AnyEvent = StoredEvent | UnknownEvent;

/** The state of a Run after its events so far; `opaque` after an event that this release does not know. */
interface CheckedRun {
  status: RunStatus | 'opaque';
  attempt: number;
}

const CLAIMED: readonly CheckedRun['status'][] = ['booting', 'running', 'waiting_input'];

/** Checks one stream, event by event, against the rules. Does not use the code that decides and folds. */
export class StreamCheck {
  /** The fold; null once an event could not be folded. */
  replayed: Replay | null = emptyReplay;
  private last: AnyEvent | null = null;
  private readonly runs = new Map<string, CheckedRun>();
  private readonly claimed = new Set<string>();

  constructor(private readonly report: Report) {}

  add(events: readonly AnyEvent[]): void {
    for (const event of events) {
      this.checkPlace(event);
      if (isKnownEvent(event)) this.checkKnown(event);
      else this.checkUnknown(event);
      this.last = event;
    }
    this.fold(events);
  }

  /** Adds the findings that only the end of the stream shows. */
  end(): void {
    const state = this.replayed?.state;
    if (state === undefined || state.lifecycle === 'none' || this.replayed?.unknownEvents !== 0) return;
    const status = threadStatus(state);
    if (state.status !== status) this.report('I9', `the log ends with ${state.status}, but the Thread is ${status}`);
  }

  private fold(events: readonly AnyEvent[]): void {
    try {
      this.replayed = this.replayed && replay(this.replayed, events);
    } catch (error) {
      this.replayed = null;
      this.report('fold', `an event up to version ${events.at(-1)?.version} cannot be folded: ${String(error)}`);
    }
  }

  private checkPlace({ version, id, occurredAt }: AnyEvent): void {
    const { last } = this;
    const expected = (last?.version ?? 0) + 1;
    if (version !== expected) this.report('I2', `version ${expected} is missing; found version ${version} instead`);
    if (last === null) return;
    if (id <= last.id) this.report('I2', `version ${version}: its id ${id} is not greater than ${last.id}`);
    if (occurredAt < last.occurredAt) {
      this.report('I2', `version ${version}: it occurred at ${occurredAt}, before ${last.occurredAt}`);
    }
  }

  private checkKnown(event: StoredEvent): void {
    if ((event.type === 'thread.created') !== (this.last === null)) {
      this.report('begin', `version ${event.version} is ${event.type}; only the first event is thread.created`);
    }
    this.checkPublic(event);
    // `thread.…` events name the Run that caused them. They do not belong to it.
    if (event.runId === null || event.type.startsWith('thread.')) {
      if (event.type.startsWith('run.')) this.report('I3', `version ${event.version}: ${event.type} has no runId`);
      return;
    }
    this.checkRun(event, event.runId);
  }

  private checkPublic(event: StoredEvent): void {
    let shown: boolean;
    try {
      shown = showEvent(event) !== null;
    } catch {
      return; // The event cannot be folded either.
    }
    if (shown !== event.public)
      this.report(
        'public',
        `version ${event.version}: ${event.type} is stored with public = ${event.public}; expected ${shown}`,
      );
  }

  private checkRun(event: StoredEvent, runId: string): void {
    const run = this.runs.get(runId);
    const at = `version ${event.version}: ${event.type} of Run ${runId}`;
    if (run?.status === 'opaque') return;
    if (event.type === 'run.queued') {
      if (run !== undefined) return this.report('I3', `${at}, which was queued before`);
      this.runs.set(runId, { status: 'queued', attempt: 0 });
      return;
    }
    if (run === undefined) {
      // A message comes before the Run that it starts.
      if (event.type !== 'message.added') this.report('I3', `${at}, which was never queued`);
      return;
    }
    if (isTerminal(run.status)) return this.report('I3', `${at}, which had already ended (${run.status})`);
    this.checkAttempt(event, run, at);
    this.checkMove(event, runId, { ...run, status: run.status }, at);
  }

  private checkAttempt({ type, attempt }: StoredEvent, run: CheckedRun, at: string): void {
    if (type === 'run.claimed') {
      const isHigher = attempt !== null && attempt > run.attempt;
      if (!isHigher) this.report('I6', `${at} has attempt ${attempt}, which is not higher than ${run.attempt}`);
      run.attempt = Math.max(run.attempt, attempt ?? 0);
    } else if (attempt !== null && attempt !== run.attempt) {
      this.report('I6', `${at} has attempt ${attempt}, but the claim has attempt ${run.attempt}`);
    } else if (attempt !== null && run.status !== 'booting' && run.status !== 'running') {
      this.report('I6', `${at} was written by a worker, but the Run was ${run.status}`);
    }
  }

  private checkMove(event: StoredEvent, runId: string, run: CheckedRun & { status: RunStatus }, at: string): void {
    const move = RUN_MOVES.find((name) => event.type === `run.${name}`);
    if (move === undefined) return;
    const status = nextRunStatus(run.status, move);
    if (status === null) return this.report('I3', `${at}, which was ${run.status}: illegal transition`);
    this.setStatus(runId, status);
    if (CLAIMED.includes(status) && this.claimed.size > 1) {
      this.report(
        'I4',
        `${at}: ${this.claimed.size} Runs are claimed concurrently, ${[...this.claimed].join(' and ')}`,
      );
    }
  }

  private setStatus(runId: string, status: CheckedRun['status']): void {
    const run = this.runs.get(runId) ?? { status, attempt: 0 };
    this.runs.set(runId, { ...run, status });
    if (CLAIMED.includes(status)) this.claimed.add(runId);
    else this.claimed.delete(runId);
  }

  /** Accepts an unknown event. If it is about a Run, it may have moved the Run, so that Run is not checked further. */
  private checkUnknown({ type, runId }: UnknownEvent): void {
    if (runId !== null && type.startsWith('run.')) this.setStatus(runId, 'opaque');
  }
}
