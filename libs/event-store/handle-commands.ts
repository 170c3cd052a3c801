import { setTimeout as sleep } from 'node:timers/promises';
import type { PoolClient } from 'pg';
import {
  decide,
  followingId,
  initialState,
  isRejection,
  EVENT_TYPES,
  showEvent,
  workChanges,
  type Command,
  type CommandOutcome,
  type Decision,
  type Rejection,
  type StoredEvent,
  type ThreadState,
} from '#domain';
import { DatabaseAway, idFactory } from '#platform';
import { foldSummaries, noSummaries, type RunSummary } from '#projections';
import type {
  Append,
  AppendHook,
  AppendResult,
  Fence,
  LoadedThread,
  LostResult,
  RequestAnswer,
  RunOffer,
} from './append.ts';
import { countEvents } from './count.ts';
import { Lines } from './lines.ts';
import type { ThreadStore } from './thread-store.ts';
import { tracedAppend } from './traced-append.ts';
import { metrics } from './metrics.ts';

/** What listeners hear after a commit: hints for the live bus and the queue, never awaited by the writer. */
export interface Commit {
  before: LoadedThread;
  after: LoadedThread;
  events: readonly StoredEvent[];
  /** Runs that became ready to be offered. */
  offers: RunOffer[];
}

export interface Handled {
  outcome: 'appended' | 'unchanged';
  /** The Thread after the commands. */
  thread: LoadedThread;
  events: readonly StoredEvent[];
  /** One for each command. */
  outcomes: readonly CommandOutcome[];
  /** The `endedRuns` of the request. */
  endedRuns: EndedRuns;
}

type EndedRuns = ReadonlyMap<string, RunSummary>;

/** `body`: of the answer to the request; empty if the request makes none. */
export type Answered = Handled & { body: string };

export interface CommandRequest<Reason extends string = string> {
  threadId: string;
  /** The commands, or how to make them from the Thread as it is; all or none apply. */
  commands: readonly Command[] | ((thread: LoadedThread) => readonly Command[] | Rejection);
  /** Runs of the Thread that are known to have ended: an interrupt of one has nothing to do. */
  endedRuns?: EndedRuns | undefined;
  /** The Thread as the caller last saw it: saves the load. A conflict loads it anew. */
  from?: LoadedThread | undefined;
  fence?: Fence | undefined;
  due?: Fence | undefined;
  /** What joins the transaction of the append, or how to make it from the state after the commands. May throw DatabaseAway. */
  hook?: HookOrNone<Reason> | ((state: ThreadState) => HookOrNone<Reason> | Promise<HookOrNone<Reason>>);
  /** Makes the answer to the request from what the commands lead to. */
  answer?: ((handled: Handled) => RequestAnswer) | undefined;
  /** Until when a database that is away is asked again, by performance.now(), which nobody sets; default: for 5 s. */
  giveUpAt?: number | undefined;
}

/** `rejected`: the Thread's state forbids a command. `conflict`: the Thread changed during every try. Others: AppendResult. */
export type CommandResult<Reason extends string = string> =
  | Answered
  | { outcome: 'rejected'; rejection: Rejection }
  | Exclude<AppendResult<Reason>, { outcome: 'appended' }>;

type HookOrNone<Reason extends string> = AppendHook<Reason> | undefined;

/** Conflicts are with other processes, one command at a time each; whoever waits longer after each would starve. */
const TRIES = 32;
const MAX_PAUSE_MS = 4;
const RECONNECT_MS = 50;
/** Long beside what a machine that is busy with much else takes: such a one is slow, and not away. */
const GIVE_UP_AFTER_MS = 5_000;
/** An answer is waited for at least so long, even when it is time to give up. */
const MIN_ANSWER_MS = 500;

export interface CommandHandlerOptions {
  store: ThreadStore;
  /** Milliseconds since 1970; only ever a hint: stored times never go back. */
  now?: () => number;
  /** How long a claim's lease lasts, milliseconds. */
  leaseMs: number;
  onCommit?: (commit: Commit) => void;
  /** A Thread is gone; `version` is above all that it had. */
  onDeleted?: (threadId: string, version: number) => void;
}

/** Runs commands against Threads: load, decide, fold, append; again on a conflict, and once only if an answer is lost. */
export class CommandHandler {
  private readonly store: ThreadStore;
  private readonly now: () => number;
  private readonly leaseMs: number;
  private readonly onCommit: (commit: Commit) => void;
  private readonly onDeleted: (threadId: string, version: number) => void;
  private readonly newId = idFactory();
  /**
   * The commands here on each Thread. All at once they would only conflict: of 64 messages to one Thread, 18 were appended
   * within their tries. Between processes conflicts stay, one at a time each.
   */
  private readonly lines = new Lines();

  constructor({ store, now = Date.now, leaseMs, onCommit = nothing, onDeleted = nothing }: CommandHandlerOptions) {
    this.store = store;
    this.now = now;
    this.leaseMs = leaseMs;
    this.onCommit = onCommit;
    this.onDeleted = onDeleted;
  }

  /** Throws DatabaseAway when the database stays away past `giveUpAt`; then it is not known whether they applied. */
  async handle<Reason extends string = never>(request: CommandRequest<Reason>): Promise<CommandResult<Reason>> {
    const { threadId, giveUpAt = performance.now() + GIVE_UP_AFTER_MS } = request;
    return this.lines.run(threadId, async (waited) => {
      // With the database away the whole line gives up at once, rather than one after the other.
      if (waited && performance.now() >= giveUpAt)
        throw new DatabaseAway(new Error('timed out waiting for earlier commands on the same Thread'));
      return (await this.handleInTurn(request, giveUpAt)) as CommandResult<Reason>;
    });
  }

  /**
   * Deletes a Thread for good. Its Runs cannot append any more, because the stream is gone. `within` shares the transaction.
   * Returns the blobs that no file has any more, null if there is no such Thread. Throws DatabaseAway; the Thread may be deleted
   * then.
   */
  async deleteThread(threadId: string, within?: (client: PoolClient) => Promise<void>): Promise<string[] | null> {
    const deleted = await this.store.deleteThread(threadId, within);
    if (deleted === null) return null;
    this.onDeleted(threadId, deleted.version + 1);
    return deleted.blobKeys;
  }

  private async handleInTurn(request: CommandRequest, giveUpAt: number): Promise<CommandResult> {
    let before = request.from ?? (await this.loadOrNone(request.threadId, giveUpAt));
    for (let tries = 0; tries < TRIES; tries++) {
      // 1. Decide on what is known.
      const decision = this.decide(request, before);
      if (isRejection(decision)) {
        // A refusal may rest on a stale copy: only one that was just loaded counts.
        const stale = before;
        if (before === request.from) before = await this.loadOrNone(request.threadId, giveUpAt);
        if (before.version === stale.version) {
          // A worker's claim that does not hold any more.
          if (request.fence !== undefined) metrics.appends.inc({ outcome: 'refused' });
          return { outcome: 'rejected', rejection: decision };
        }
        continue;
      }
      // 2. Fold it into what the append writes.
      const prepared = this.prepare(before, decision, request);
      const handled = handledBy(prepared, decision, request);
      const made = request.answer?.(handled);
      const answered = { ...handled, body: made?.body ?? '' };
      const answer = made?.key === undefined ? undefined : made;
      const append = { ...prepared, answer, hook: await this.hookOf(request, decision.state, giveUpAt) };
      if (append.events.length === 0 && answer === undefined) return answered;
      // 3. Append.
      const result = await tracedAppend(append, () => this.appendOnce(append, giveUpAt));
      if (result.outcome === 'appended') {
        countEvents(before, append.events);
        this.onCommit({ ...append, offers: offersOf(append) });
        return answered;
      }
      if (result.outcome !== 'conflict') return result;
      // 4. Somebody else was first: look again.
      await sleep(Math.random() * MAX_PAUSE_MS);
      const { version } = before;
      before = await this.loadOrNone(request.threadId, giveUpAt);
      // Nobody was: what was due has been renewed.
      if (append.due !== undefined && before.version === version) break;
    }
    return { outcome: 'conflict' };
  }

  private async hookOf({ hook }: CommandRequest, state: ThreadState, giveUpAt: number): Promise<HookOrNone<string>> {
    return typeof hook === 'function' ? this.whileAway(giveUpAt, async () => hook(state)) : hook;
  }

  private decide({ commands, endedRuns }: CommandRequest, before: LoadedThread): Decision | Rejection {
    const made = typeof commands === 'function' ? commands(before) : commands;
    return isRejection(made) ? made : decide(made, before.state, this.timeAfter(before), endedRuns);
  }

  private async loadOrNone(threadId: string, giveUpAt: number): Promise<LoadedThread> {
    const thread = await this.whileAway(giveUpAt, (timeoutMs) => this.store.load(threadId, timeoutMs));
    return thread ?? absentThread(threadId);
  }

  private timeAfter({ lastOccurredAt }: LoadedThread): string {
    const now = new Date(this.now()).toISOString();
    return lastOccurredAt !== null && lastOccurredAt > now ? lastOccurredAt : now;
  }

  private prepare(before: LoadedThread, decision: Decision, { fence, due }: CommandRequest): Append {
    const events = this.place(before, decision);
    const last = events.at(-1);
    const after: LoadedThread = {
      threadId: before.threadId,
      version: before.version + events.length,
      lastEventId: last?.id ?? before.lastEventId,
      lastOccurredAt: last?.occurredAt ?? before.lastOccurredAt,
      state: decision.state,
      summaries: foldSummaries(before.summaries, events),
    };
    const work = workChanges(before.state, after.state, this.leaseMs);
    return { before, after, events, work, fence, due };
  }

  /** Gives events their version, id and place in the log. */
  private place(before: LoadedThread, { events }: Decision): StoredEvent[] {
    const { threadId } = before;
    let lastId = before.lastEventId;
    return events.map((event, i) => {
      // By our clock, not the event's time: that of a Thread whose writer was ahead would carry over to all others.
      lastId = followingId(lastId, this.newId(this.now()));
      const version = before.version + i + 1;
      const { type, data, runId, attempt, occurredAt } = event;
      const place = {
        version,
        id: lastId,
        schemaVersion: EVENT_TYPES[type].schemaVersion,
        public: showEvent(event) !== null,
      };
      return { type, data, runId, attempt, occurredAt, threadId, ...place } as StoredEvent;
    });
  }

  /** Appends once. If the response is lost, looks for the events, and sends the append again if they are not there. */
  private async appendOnce(append: Append, giveUpAt: number): Promise<AppendResult> {
    for (let lost = false; ; lost = true) {
      const result = await this.whileAway(giveUpAt, (timeoutMs) => this.store.append(append, timeoutMs));
      if (result.outcome === 'appended') return result;
      if (!lost && result.outcome !== 'unknown') return result;
      // What was sent before its answer was lost may have committed only now, against what was sent again.
      const found = await this.whileAway(giveUpAt, (timeoutMs) => this.findAppend(append, timeoutMs));
      if (found !== null) return found;
      if (isFinal(result)) return result;
      if (performance.now() >= giveUpAt) throw new DatabaseAway(new Error('no response to an append'));
      await sleep(RECONNECT_MS);
    }
  }

  private async findAppend({ after, events, answer }: Append, timeoutMs: number): Promise<AppendResult | null> {
    const { threadId, version, lastEventId } = after;
    if (events.length > 0) {
      const found = await this.store.wasAppended(threadId, version, lastEventId ?? '', timeoutMs);
      return found ? { outcome: 'appended' } : null;
    }
    // Without events the key is all there is to find, and it may be another request's.
    const found = answer && (await this.store.findKey(answer.tokenId, answer.key, timeoutMs));
    return found ? { outcome: 'key_taken', isFinal: true } : null;
  }

  /** Asks again while nothing could be sent, until it is time to give up. */
  private async whileAway<T>(giveUpAt: number, ask: (timeoutMs: number) => Promise<T>): Promise<T> {
    for (;;) {
      try {
        return await ask(Math.max(MIN_ANSWER_MS, giveUpAt - performance.now()));
      } catch (error) {
        if (!(error instanceof DatabaseAway) || performance.now() >= giveUpAt) throw error;
        await sleep(RECONNECT_MS);
      }
    }
  }
}

/** A Thread that does not exist: what a creator gives as `from`, to save a load that finds nothing. */
export function absentThread(threadId: string): LoadedThread {
  return {
    threadId,
    version: 0,
    lastEventId: null,
    lastOccurredAt: null,
    state: initialState,
    summaries: noSummaries,
  };
}

const nothing = (): void => undefined;

const NO_RUNS: EndedRuns = new Map();

/** Returns whether no sending of the append can commit any more, given that none has. */
function isFinal(result: AppendResult | LostResult): result is AppendResult {
  return result.outcome === 'conflict' || ('isFinal' in result && result.isFinal);
}

function handledBy(
  { after, events }: Append,
  { outcomes }: Decision,
  { endedRuns = NO_RUNS }: Pick<CommandRequest, 'endedRuns'>,
): Handled {
  return { outcome: events.length > 0 ? 'appended' : 'unchanged', thread: after, events, outcomes, endedRuns };
}

function offersOf({ after, work }: Append): RunOffer[] {
  const ready = work.rows.filter(({ state }) => state === 'ready');
  return ready.map(({ runId, dispatch }) => ({ runId, threadId: after.threadId, dispatch }));
}
