import { evolve, initialState, workChanges, type StoredEvent, type ThreadState } from '#domain';
import { foldSummaries, noSummaries, type Summaries } from '#projections';
import type { CallRecord } from './callers.ts';
import type { Worker } from './nodes.ts';
import { LimitOracle } from './limit-oracle.ts';
import { must, StreamOracle } from './stream-oracle.ts';
import type { Stored, StreamRow, Tables, StoredWorkItem } from './tables.ts';
import { ASKED, IDEMPOTENT, type Effect, type GivenStep } from './tools.ts';

/** A Thread as its events alone say it is. */
interface Followed {
  stream: StreamOracle;
  state: ThreadState;
  summaries: Summaries;
  deleted: boolean;
  /** The rows as they were checked last: most appends change none. */
  checked: { state: string; thread: string | null };
}

/** Looks at everything that is stored, when it is stored, and at the whole when the simulation is over. */
export class Oracle {
  readonly threads = new Map<string, Followed>();
  private readonly effects = new Map<string, number>();
  private readonly threadOfRun = new Map<string, string>();
  readonly limits: LimitOracle;
  private workBefore = new Map<string, StoredWorkItem>();

  constructor(
    private readonly tables: () => Tables,
    /** Whether that process believes to hold that claim, by its own clock. */
    private readonly isBelieved: (holder: string, runId: string, attempt: number) => boolean,
    /** Whether that process may not know yet that the agent or the organization has a limit. */
    knowsNoLimit: (holder: string, id: string) => boolean,
  ) {
    this.limits = new LimitOracle(tables, knowsNoLimit);
  }

  /** After each append. */
  stored({ threadId, before, events, transaction }: Stored): void {
    const followed = this.threads.get(threadId) ?? newFollowed();
    this.threads.set(threadId, followed);
    must(!followed.deleted, `I12: an append to ${threadId}, which is deleted`);
    must(events.length > 0 ? before + 1 === events[0]!.version : true, 'I2: events do not follow the version');
    for (const event of events) {
      followed.stream.see(event);
      followed.state = evolve(followed.state, event);
      if (event.type === 'run.queued' && event.runId !== null) this.threadOfRun.set(event.runId, threadId);
    }
    followed.summaries = foldSummaries(followed.summaries, events);
    this.checkRows(threadId, followed, events);
    this.checkWork(threadId, followed.state, events);
    for (const event of events) {
      this.checkDue(event);
      if (event.type === 'run.claimed')
        this.limits.claimed(event.runId!, this.workBefore.get(event.runId!), transaction);
    }
    if (events.some(({ type }) => type.startsWith('run.'))) this.noteWork();
  }

  get runCount(): number {
    return this.threadOfRun.size;
  }

  deleted(threadId: string): void {
    const followed = this.threads.get(threadId);
    if (followed) followed.deleted = true;
    const { work, keys } = this.tables();
    must(![...work.values()].some((row) => row.threadId === threadId), 'I12: a work row of a deleted Thread');
    must(
      ![...keys.values()].some((row) => row.threadId === threadId && row.body !== ''),
      'I12: a body of a deleted Thread',
    );
  }

  /**
   * A model step begins. It is given what was stored before its Run was claimed, also by earlier Runs: the result of each call,
   * because it would make an unknown one again under another id, and once what people saw of each message that a stop cut.
   * If the Thread was deleted while the transcript was read, parts of it may be missing, but not all. No append of it is stored.
   */
  step({ threadId, runId, attempt, transcript }: GivenStep): void {
    const followed = this.threads.get(threadId)!;
    if (followed.deleted) return must(transcript.length > 0, `a step of ${runId} begins after its Thread was deleted`);
    const given = new Set(
      transcript.map((entry) => (entry.role === 'tool' ? `${entry.toolCallId} ${entry.outcome}` : '')),
    );
    const { results, seen } = followed.stream.knownBefore(runId, attempt);
    for (const result of results) must(given.has(result), `I10: a step of ${runId} is not told of ${result}`);
    const stopped = transcript.flatMap((entry) => (entry.role === 'assistant' && entry.stopped ? [entry.text] : []));
    same(JSON.stringify(stopped), seen, `what a step of ${runId} is told of stopped messages`);
  }

  /** A tool takes effect. */
  effect({ threadId, toolCallId, toolName }: Effect): void {
    const { stream } = this.threads.get(threadId)!;
    const startedUnder = stream.started.get(toolCallId) ?? Infinity;
    must(startedUnder < Infinity, `I10: ${toolName} takes effect, but its start is not stored`);
    if (ASKED.includes(toolName)) must(stream.allowed.has(toolCallId), `${toolName} takes effect and was not allowed`);
    const count = (this.effects.get(toolCallId) ?? 0) + 1;
    this.effects.set(toolCallId, count);
    must(count === 1 || IDEMPOTENT.includes(toolName), `I10: ${toolName} takes effect ${count} times`);
    // Also a later Run may go on with a call that was cut off.
    const claims = stream.claims - startedUnder + 1;
    must(count <= claims, `I10: ${toolName} takes effect ${count} times under ${claims} claims`);
  }

  /** I7: what is stored beside a stream is its fold. */
  private checkRows(threadId: string, followed: Followed, events: readonly StoredEvent[]): void {
    const { state, summaries, stream, checked } = followed;
    const row = this.tables().streams.get(threadId)!;
    const isSame = row.state === checked.state && row.thread === checked.thread;
    if (isSame && events.every(({ type }) => type === 'assistant.text_added')) return;
    followed.checked = { state: row.state, thread: row.thread };
    same(row.state, state, `I7: the state row of ${threadId}`);
    same(row.thread ?? 'null', summaries.thread, `I7: the summary of ${threadId}`);
    must(row.runs.size === summaries.runs.size, `I7: ${row.runs.size} Run summaries of ${threadId}`);
    for (const { id } of stream.live()) this.checkSummary(row, summaries, id);
  }

  private checkSummary(row: StreamRow, summaries: Summaries, runId: string): void {
    same(row.runs.get(runId) ?? 'null', summaries.runs.get(runId), `I7: the summary of Run ${runId}`);
  }

  /** Each live Run has the work row that its state asks for; only a move, never a step, changes a lease. */
  private checkWork(threadId: string, state: ThreadState, events: readonly StoredEvent[]): void {
    const { work } = this.tables();
    const expected = workChanges(initialState, state, 1).rows;
    let count = 0;
    for (const row of work.values()) if (row.threadId === threadId) count++;
    must(count === expected.length, `work: ${threadId} has ${count} rows, its state says ${expected.length}`);
    for (const { runId, dispatch, attempt, holder, state: wanted, dueInMs } of expected) {
      const row = work.get(runId);
      const found = row?.state === 'limited' ? 'ready' : row?.state;
      const isAwake = wanted === 'delayed' && dueInMs !== null && found === 'ready';
      const isRight = row !== undefined && found === (isAwake ? 'ready' : wanted) && row.dispatch === dispatch;
      if (!isRight || row.attempt !== attempt || row.holder !== holder)
        must(false, `work: the row of ${runId} is ${JSON.stringify(row)}`);
      const moved = events.some((event) => event.runId === runId && event.type.startsWith('run.'));
      const before = this.workBefore.get(runId);
      if (events.some((event) => event.runId === runId && event.type === 'run.claimed'))
        must(
          before?.state === 'ready' || before?.state === 'limited',
          `Run ${runId} is claimed, but was ${before?.state}`,
        );
      must(!moved || row?.limitedBy === null, `a place is kept for ${runId}, which was not let in`);
      if (before?.state === 'leased' && row?.state === 'leased' && !moved)
        must(before.dueAt === row.dueAt, `a step has renewed the lease of ${runId}`);
    }
  }

  /** Nobody's time is over before it is, by the database's clock; and no lease before its holder has noticed. */
  private checkDue({ type, data, runId }: StoredEvent): void {
    const before = this.workBefore.get(runId ?? '');
    const { reason, error, limit } = data as { reason?: string; error?: { code: string }; limit?: string };
    const isTakenBack = reason === 'lease_expired' || error?.code === 'worker_lost';
    if (before === undefined || (!isTakenBack && type !== 'run.expired')) return;
    if (limit === 'queue') this.limits.expired(before);
    const dueAt = limit === 'work' ? before.workUntil : before.dueAt;
    must(dueAt !== null && dueAt <= this.tables().now, `${type} of ${runId} ${JSON.stringify(data)} comes too soon`);
    const { holder, attempt } = before;
    if (!isTakenBack || holder === null) return;
    must(!this.isBelieved(holder, runId!, attempt), `${runId} is taken back from ${holder}, who believes to hold it`);
  }

  /** What is there now, so that the next append's own changes can be told from it. */
  noteWork(): void {
    this.limits.note();
    this.workBefore = new Map([...this.tables().work].map(([runId, row]) => [runId, { ...row }]));
  }

  /** Whether nothing is under way any more: each Run has ended or waits for a person. */
  get isSettled(): boolean {
    for (const { stream, deleted } of this.threads.values())
      if (!deleted && stream.live().some(({ status }, i) => i === 0 && status !== 'waiting_input')) return false;
    return true;
  }

  /** At the end, all faults over and time gone by. */
  end(records: readonly CallRecord[], workers: readonly Worker[]): void {
    for (const [threadId, { stream, deleted }] of this.threads) {
      if (deleted) {
        must(!this.tables().streams.has(threadId), `I12: ${threadId} is deleted and there`);
        continue;
      }
      const [current] = stream.live();
      must(
        current === undefined || current.status === 'waiting_input',
        `I9: Run ${current?.id} is still ${current?.status}`,
      );
      this.checkWork(threadId, this.threads.get(threadId)!.state, []);
    }
    for (const row of this.tables().work.values()) {
      must(row.state !== 'leased', `I9: the lease of ${row.runId} never ends`);
      must(row.state !== 'limited', `I9: ${row.runId} waits for a limit for ever`);
    }
    for (const { leases, enqueuer, process } of workers) {
      must(leases.claims().length === 0, `I9: ${process.name} still holds a claim`);
      must(enqueuer.inFlight === 0, `${process.name} still holds jobs`);
    }
    records.forEach((record) => this.checkCall(record));
  }

  /** I1, I5: what was answered is there, once. */
  private checkCall({ key, kind, runIds, requestId, outcome }: CallRecord): void {
    const made = runIds.filter((runId) => this.threadOfRun.has(runId));
    must(made.length <= 1, `I5: ${kind} (${key}) has made ${made.length} Runs`);
    if (runIds.length > 0 && outcome === 'ok')
      must(made.length === 1, `I1: ${kind} (${key}) was answered and is not there`);
    if (outcome === 'refused') must(made.length === 0, `${kind} (${key}) was refused and is there`);
    if (requestId === null || outcome === 'unknown') return;
    const won = [...this.threads.values()].some(({ stream }) => stream.decidedBy.get(requestId) === key);
    must(won === (outcome === 'ok'), `decision ${key} was answered ${outcome}, and ${won ? 'won' : 'did not win'}`);
  }
}

function newFollowed(): Followed {
  return {
    stream: new StreamOracle(),
    state: initialState,
    summaries: noSummaries,
    deleted: false,
    checked: { state: '', thread: null },
  };
}

function same(stored: string, folded: unknown, what: string): void {
  const text = textOf(folded);
  if (stored !== text) must(false, `${what} is ${stored}, its events say ${text}`);
}

/** What is folded never changes, and most events leave most of it as it is. */
const texts = new WeakMap<object, string>();

function textOf(folded: unknown): string {
  if (typeof folded !== 'object' || folded === null) return JSON.stringify(folded);
  const known = texts.get(folded);
  if (known !== undefined) return known;
  const text = JSON.stringify(folded);
  texts.set(folded, text);
  return text;
}
