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
import { DatabaseUnavailable, idFactory } from '#platform';
import { foldSummaries, noSummaries, type RunSummary } from '#projections';
import type {
  Append,
  AppendHook,
  AppendResult,
  Fence,
  LoadedThread,
  LostResult,
  RequestAnswer,
  RunJob,
} from './append.ts';
import { countEvents } from './count.ts';
import { KeyedMutex } from './keyed-mutex.ts';
import type { ThreadStore } from './thread-store.ts';
import { tracedAppend } from './traced-append.ts';
import { metrics } from './metrics.ts';

/** A commit, as listeners receive it. A hint for the live bus and the queue, which the writer does not await. */
export interface Commit {
  before: LoadedThread;
  after: LoadedThread;
  events: readonly StoredEvent[];
  /** Runs that became ready, for the queue. */
  jobs: RunJob[];
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

/** A result with the body of the answer to the request; empty if the request makes none. */
export type Answered = Handled & { body: string };

export interface CommandRequest<Reason extends string = string> {
  threadId: string;
  /** The commands, or a function that makes them from the current Thread. All or none apply. */
  commands: readonly Command[] | ((thread: LoadedThread) => readonly Command[] | Rejection);
  /** Runs of the Thread that are known to have ended. An interrupt of one does nothing. */
  endedRuns?: EndedRuns | undefined;
  /** The Thread as the caller last saw it. Saves the load; a conflict loads it again. */
  from?: LoadedThread | undefined;
  fence?: Fence | undefined;
  due?: Fence | undefined;
  /** The hook of the append, or a function that makes it from the state after the commands. It may throw DatabaseUnavailable. */
  hook?: HookOrNone<Reason> | ((state: ThreadState) => HookOrNone<Reason> | Promise<HookOrNone<Reason>>);
  /** Makes the answer to the request from the result of the commands. */
  answer?: ((handled: Handled) => RequestAnswer) | undefined;
  /** Until when an unavailable database is retried, by the monotonic performance.now(). Default: 5 s. */
  giveUpAt?: number | undefined;
}

/** `rejected`: the Thread's state forbids a command. `conflict`: the Thread changed during every try. Others: AppendResult. */
export type CommandResult<Reason extends string = string> =
  | Answered
  | { outcome: 'rejected'; rejection: Rejection }
  | Exclude<AppendResult<Reason>, { outcome: 'appended' }>;

type HookOrNone<Reason extends string> = AppendHook<Reason> | undefined;

/** Conflicts are with other processes, one command each. The pause does not grow, because a longer pause would starve one. */
const TRIES = 32;
const MAX_PAUSE_MS = 4;
const RECONNECT_MS = 50;
/** Long, because a database on a busy machine is slow but not unavailable. */
const GIVE_UP_AFTER_MS = 5_000;
/** The minimum wait for a response, even when it is time to give up. */
const MIN_ANSWER_MS = 500;

export interface CommandHandlerOptions {
  store: ThreadStore;
  /** Milliseconds since 1970. Only a hint: stored times never go back. */
  now?: () => number;
  /** The duration of a claim's lease, milliseconds. */
  leaseMs: number;
  onCommit?: (commit: Commit) => void;
  /** Called after a Thread was deleted. `version` is above all its versions. */
  onDeleted?: (threadId: string, version: number) => void;
}

/** Runs commands against Threads: load, decide, fold, append. Retries a conflict. Appends once, even if a response is lost. */
export class CommandHandler {
  private readonly store: ThreadStore;
  private readonly now: () => number;
  private readonly leaseMs: number;
  private readonly onCommit: (commit: Commit) => void;
  private readonly onDeleted: (threadId: string, version: number) => void;
  private readonly newId = idFactory();
  /**
   * Runs the commands of this process on a Thread one at a time. Concurrent ones would only conflict: of 64 messages to one
   * Thread, 18 were appended within their tries. Conflicts remain between processes, with one command each.
   */
  private readonly mutex = new KeyedMutex();

  constructor({ store, now = Date.now, leaseMs, onCommit = nothing, onDeleted = nothing }: CommandHandlerOptions) {
    this.store = store;
    this.now = now;
    this.leaseMs = leaseMs;
    this.onCommit = onCommit;
    this.onDeleted = onDeleted;
  }

  /** Throws DatabaseUnavailable if the database is unavailable until `giveUpAt`. Then it is unknown whether the commands applied. */
  async handle<Reason extends string = never>(request: CommandRequest<Reason>): Promise<CommandResult<Reason>> {
    const { threadId, giveUpAt = performance.now() + GIVE_UP_AFTER_MS } = request;
    return this.mutex.run(threadId, async (waited) => {
      // If the database is unavailable, all waiting commands give up together, not one after the other.
      if (waited && performance.now() >= giveUpAt)
        throw new DatabaseUnavailable(new Error('timed out waiting for earlier commands on the same Thread'));
      return (await this.handleInTurn(request, giveUpAt)) as CommandResult<Reason>;
    });
  }

  /**
   * Deletes a Thread permanently. Its Runs cannot append afterwards, because the stream is deleted. `within` shares the
   * transaction. Returns the blobs that no file refers to any more, null if there is no such Thread. Throws DatabaseUnavailable; the
   * Thread may be deleted then.
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
        // A refusal may come from a stale copy. It counts only on a Thread that was just loaded.
        const stale = before;
        if (before === request.from) before = await this.loadOrNone(request.threadId, giveUpAt);
        if (before.version === stale.version) {
          // A worker's claim that does not hold any more. The label `refused` is older than the outcome of that name (count.ts).
          if (request.fence !== undefined) metrics.appends.inc({ outcome: 'refused' });
          return { outcome: 'rejected', rejection: decision };
        }
        continue;
      }
      // 2. Fold it into the append.
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
        this.onCommit({ ...append, jobs: jobsOf(append) });
        return answered;
      }
      if (result.outcome !== 'conflict') return result;
      // 4. Another writer was first: load again.
      await sleep(Math.random() * MAX_PAUSE_MS);
      const { version } = before;
      before = await this.loadOrNone(request.threadId, giveUpAt);
      // The version is unchanged, so the lease was renewed.
      if (append.due !== undefined && before.version === version) break;
    }
    return { outcome: 'conflict' };
  }

  private async hookOf({ hook }: CommandRequest, state: ThreadState, giveUpAt: number): Promise<HookOrNone<string>> {
    return typeof hook === 'function' ? this.retryWhileUnavailable(giveUpAt, async () => hook(state)) : hook;
  }

  private decide({ commands, endedRuns }: CommandRequest, before: LoadedThread): Decision | Rejection {
    const made = typeof commands === 'function' ? commands(before) : commands;
    return isRejection(made) ? made : decide(made, before.state, this.timeAfter(before), endedRuns);
  }

  private async loadOrNone(threadId: string, giveUpAt: number): Promise<LoadedThread> {
    const thread = await this.retryWhileUnavailable(giveUpAt, (timeoutMs) => this.store.load(threadId, timeoutMs));
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
      // Uses our clock, not the time of the event. A writer whose clock was ahead would move the ids of all other Threads.
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
      const result = await this.retryWhileUnavailable(giveUpAt, (timeoutMs) => this.store.append(append, timeoutMs));
      if (result.outcome === 'appended') return result;
      if (!lost && result.outcome !== 'unknown') return result;
      // The sending whose response was lost may have committed only now, and have caused this result.
      const found = await this.retryWhileUnavailable(giveUpAt, (timeoutMs) => this.findAppend(append, timeoutMs));
      if (found !== null) return found;
      if (isFinal(result)) return result;
      if (performance.now() >= giveUpAt) throw new DatabaseUnavailable(new Error('no response to an append'));
      await sleep(RECONNECT_MS);
    }
  }

  private async findAppend({ after, events, answer }: Append, timeoutMs: number): Promise<AppendResult | null> {
    const { threadId, version, lastEventId } = after;
    if (events.length > 0) {
      const found = await this.store.wasAppended(threadId, version, lastEventId ?? '', timeoutMs);
      return found ? { outcome: 'appended' } : null;
    }
    // Without events, only the key can be found, and it may be that of another request.
    const found = answer && (await this.store.findKey(answer.tokenId, answer.key, timeoutMs));
    return found ? { outcome: 'key_taken', isFinal: true } : null;
  }

  /** Retries while the database is unavailable, until it is time to give up. */
  private async retryWhileUnavailable<T>(giveUpAt: number, ask: (timeoutMs: number) => Promise<T>): Promise<T> {
    for (;;) {
      try {
        return await ask(Math.max(MIN_ANSWER_MS, giveUpAt - performance.now()));
      } catch (error) {
        if (!(error instanceof DatabaseUnavailable) || performance.now() >= giveUpAt) throw error;
        await sleep(RECONNECT_MS);
      }
    }
  }
}

/** Returns a Thread that does not exist. As the `from` of a create, it saves a load that finds nothing. */
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

function jobsOf({ after, work }: Append): RunJob[] {
  const ready = work.rows.filter(({ state }) => state === 'ready');
  return ready.map(({ runId, dispatch }) => ({ runId, threadId: after.threadId, dispatch }));
}
