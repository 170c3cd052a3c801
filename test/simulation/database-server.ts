import type { GroupedStatement } from '#platform';
import { appendGroup, valuesOf } from './append-statement.ts';
import type { Faults } from './faults.ts';
import type { Scheduler, SimulatedProcess, Task } from './scheduler.ts';
import { deleteThread, execute, locksOf, type Answer } from './statements.ts';
import { newTransaction, type Locks, type Tables, type Transaction } from './tables.ts';

export interface Statement {
  name?: string;
  text: string;
  values?: unknown[];
  /** Until when the client waits for the answer, milliseconds. */
  query_timeout?: number;
  /** The members of a group, whose answer is one row with the rows of all. */
  members?: readonly GroupedStatement[];
}

/** The statement that stands for a group. */
export const groupOf = (members: readonly GroupedStatement[], query_timeout: number): Statement => ({
  ...{ name: 'group', text: 'group', members, query_timeout },
  values: members.map(({ values }) => values),
});

/** The name of a member's statement if it is sent alone. */
export const aloneName = ({ name }: GroupedStatement): string => name.replace('-in-group', '');

export interface Result {
  rows: Record<string, unknown>[];
  rowCount: number;
}

/** One connection, where it matters which: in a transaction, or with an advisory lock. */
export class Session {
  transaction: Transaction | null = null;
  readonly advisoryLocks = new Set<unknown>();
  readonly channels = new Set<string>();
  lastHeardAt = 0;
  ended = false;
  /** Hears that the server has ended it. */
  onEnd: (() => void) | null = null;
  /** Hears of notifications. */
  onNotify: (() => void) | null = null;

  constructor(
    readonly process: SimulatedProcess,
    /** Ended when nothing was heard for so long, milliseconds. */
    readonly maxSilenceMs: number,
  ) {}
}

interface Call {
  process: SimulatedProcess;
  statement: Statement;
  session: Session | null;
  answer: (delayMs: number, result: Result | Error) => void;
  settled: boolean;
  loseAnswer: boolean;
  /** Whether it has waited for a lock. */
  waits: boolean;
}

/** Receives the server's actions in their order. */
export interface ServerObserver {
  /** A statement was executed. `session` is null for a statement of a pool outside a transaction. */
  executed(session: Session | null, statement: Statement, answer: Result | Error): void;
  /** A statement waits for a lock. `limits` are the limit locks that its transaction holds. */
  blocked(session: Session | null, statement: Statement, limits: readonly string[]): void;
  /** Listening sessions receive a notification. */
  notified(sessions: readonly Session[]): void;
  /** The session has ended with its transaction and its advisory locks. */
  ended(session: Session): void;
}

export interface DatabaseServerOptions {
  scheduler: Scheduler;
  tables: Tables;
  faults: Faults;
  crash: (process: SimulatedProcess) => void;
  trace: (what: () => string) => void;
  observer?: ServerObserver | undefined;
}

const DEFAULT_TIMEOUT_MS = 30_000;
const IDLE_IN_TRANSACTION_MS = 15_000;

/** PostgreSQL as its clients see it: statements that arrive, take effect or not, and are answered or not. */
export class DatabaseServer {
  private isDown = false;
  private readonly calls = new Set<Call>();
  private readonly sessions = new Set<Session>();
  private readonly locks = new Map<string, Session>();
  private readonly limitLocks = new Map<string, Session>();
  private waiting: Call[] = [];

  constructor(private readonly options: DatabaseServerOptions) {}

  open(process: SimulatedProcess, maxSilenceMs = Infinity): Session {
    const session = new Session(process, maxSilenceMs);
    session.lastHeardAt = this.options.scheduler.now;
    this.sessions.add(session);
    return session;
  }

  /** A connection out of a pool. */
  connect(process: SimulatedProcess): Promise<Session> {
    const { scheduler, faults } = this.options;
    if (!this.isDown) return Promise.resolve(this.open(process));
    return new Promise((_resolve, reject) => scheduler.after(faults.latency(), process, () => reject(away())));
  }

  /** The client hangs up; what it has sent may still be on its way. */
  hangUp(session: Session): void {
    const { scheduler, faults } = this.options;
    scheduler.after(faults.between(0, 3_500), null, () => this.end(session));
  }

  /** Sends a statement as that process; what its client makes of faults it throws. */
  send(process: SimulatedProcess, statement: Statement, session: Session | null): Promise<Result> {
    const { scheduler, faults, crash } = this.options;
    return new Promise((resolve, reject) => {
      const call: Call = {
        process,
        statement,
        session,
        answer: answerLater,
        settled: false,
        loseAnswer: false,
        waits: false,
      };
      let timeout: Task | null = null;
      function answerLater(delayMs: number, result: Result | Error): void {
        scheduler.after(delayMs, process, () => {
          if (call.settled) return;
          call.settled = true;
          if (timeout !== null) timeout.dropped = true;
          if (result instanceof Error) reject(result);
          else resolve(result);
        });
      }
      if (this.isDown || session?.ended) return answerLater(faults.latency(), away());
      this.calls.add(call);
      const limitMs = statement.query_timeout || DEFAULT_TIMEOUT_MS;
      timeout = scheduler.after(limitMs, process, () => answerLater(0, new Error('Query read timeout')));
      let delayMs = this.delayOf(process);
      const fault = faults.pick(OF_STATEMENTS);
      if (fault !== null) this.options.trace(() => `${process.name}: ${fault} (${shortly(statement)})`);
      if (fault === 'crash before') return crash(process);
      if (fault === 'statement lost') return answerLater(delayMs, terminated());
      if (fault === 'statement late') {
        answerLater(delayMs, terminated());
        delayMs += faults.between(1, 3_000);
      }
      call.loseAnswer = fault === 'answer lost';
      scheduler.after(delayMs, null, () => {
        this.arrive(call);
        if (fault === 'crash after' && process.alive) crash(process);
      });
    });
  }

  /** All that is under way is lost or loses its answer, every session ends, and so do transactions. */
  goDown(forMs: number): void {
    const { scheduler, faults } = this.options;
    this.isDown = true;
    for (const call of this.calls) call.answer(faults.latency(), terminated());
    this.calls.clear();
    this.waiting = [];
    for (const session of this.sessions) this.end(session);
    scheduler.after(forMs, null, () => (this.isDown = false));
  }

  /** Its kernel closes the connections of a process that is gone. */
  forget(process: SimulatedProcess): void {
    const { scheduler, faults } = this.options;
    scheduler.after(faults.between(0, 200), null, () => {
      for (const session of this.sessions) if (session.process === process) this.end(session);
    });
  }

  end(session: Session): void {
    if (session.ended) return;
    session.ended = true;
    session.advisoryLocks.clear();
    this.sessions.delete(session);
    this.finish(session, false);
    this.options.observer?.ended(session);
    const { onEnd } = session;
    if (onEnd) this.options.scheduler.after(this.delayOf(session.process), session.process, onEnd);
  }

  /** A session that holds an advisory lock: its owner leads something. */
  leaders(): Session[] {
    return [...this.sessions].filter(({ advisoryLocks }) => advisoryLocks.size > 0);
  }

  private delayOf(process: SimulatedProcess): number {
    const { scheduler, faults } = this.options;
    return faults.latency() + Math.max(0, process.cutOffUntil - scheduler.now);
  }

  private arrive(call: Call): void {
    const { faults, scheduler } = this.options;
    const { session } = call;
    // What went down with the server has been answered.
    if (!this.calls.has(call)) return;
    if (session?.ended) return call.answer(faults.latency(), terminated());
    if (session) this.hear(session);
    if (this.mustWait(call)) return this.wait(call);
    this.calls.delete(call);
    let result: Result | Error;
    try {
      result = resultOf(this.execute(call));
    } catch (error) {
      if (!('code' in (error as object))) throw error;
      result = error as Error;
    }
    this.options.observer?.executed(session, call.statement, result);
    const { idleMs = IDLE_IN_TRANSACTION_MS } = session?.transaction ?? {};
    if (session?.transaction) scheduler.after(idleMs, null, () => this.endIfSilent(session, idleMs));
    call.answer(this.delayOf(call.process), call.loseAnswer ? terminated() : result);
  }

  private execute({ statement, session, process }: Call): Answer {
    const { tables, trace } = this.options;
    const { name, text, values = [] } = statement;
    if (text.startsWith('begin')) session!.transaction = newTransaction(text);
    else if (text === 'commit' || text === 'rollback') this.finish(session!, text === 'commit');
    else if (text === 'select 1') return [{ '?column?': 1 }];
    else if (name === 'lock-limits') return (values[0] as string[]).map(() => ({ pg_advisory_xact_lock: '' }));
    else if (text.startsWith('listen ')) session!.channels.add(text.slice('listen '.length));
    else if (text.startsWith('select pg_try_advisory_lock')) return [{ held: this.tryLock(session!, values[0]) }];
    else if (text.startsWith('select pg_advisory_unlock')) return [this.notify(session!, values)];
    else if (statement.members !== undefined) return this.executeGroup(session!, statement.members);
    else if (name === 'lock-stream') return this.lockStream(session!, statement);
    else if (name === 'delete-thread') {
      this.lockRows(session!, statement);
      session!.transaction!.writes.push(() => deleteThread(tables, values[0] as string));
    } else {
      tables.transaction = session?.transaction ?? null;
      const answer = execute(tables, name, text, values);
      const rows = typeof answer === 'number' ? [] : answer;
      tables.transaction = null;
      if (session?.transaction) this.lockRows(session, statement);
      if (name !== undefined && TRACED.includes(name)) trace(() => `${process.name}: ${describe(statement, rows)}`);
      return answer;
    }
    return [];
  }

  /** All or nothing, and without waiting: a member that something else has locked counts as a conflict. */
  private executeGroup(session: Session, members: readonly GroupedStatement[]): Record<string, unknown>[] {
    const { tables, trace } = this.options;
    const isLocked = ({ threadId, runIds }: Locks): boolean => {
      const lockedBy = threadId === null ? undefined : this.locks.get(threadId);
      return (lockedBy !== undefined && lockedBy !== session) || runIds.some((runId) => tables.isLocked(runId));
    };
    const rows = appendGroup(tables, members, isLocked);
    members.forEach((member, i) => {
      const statement = { ...member, name: aloneName(member), values: valuesOf(member) };
      trace(() => `${session.process.name}: in a group: ${describe(statement, [rows[i]!])}`);
    });
    return [{ members: rows }];
  }

  private wait(call: Call): void {
    this.waiting.push(call);
    this.options.observer?.blocked(call.session, call.statement, [...(call.session?.transaction?.limits ?? [])]);
    const { lockMs = Infinity } = call.session?.transaction ?? {};
    if (call.waits || lockMs === Infinity) return;
    call.waits = true;
    this.options.scheduler.after(lockMs, null, () => {
      if (!this.waiting.includes(call)) return;
      this.waiting = this.waiting.filter((other) => other !== call);
      this.calls.delete(call);
      call.answer(this.delayOf(call.process), Object.assign(new Error('lock timeout'), { code: '55P03' }));
    });
  }

  /** For a row that another transaction has locked, or for a limit; what it got of those it keeps. */
  private mustWait({ statement, session }: Call): boolean {
    const { name, values = [] } = statement;
    const { tables } = this.options;
    if (name === 'lock-limits') return !this.lockLimits(session!, values[0] as string[]);
    if (this.locks.size === 0 && tables.locking.size === 0) return false;
    const { threadId, runIds } = locksOf(tables, name, values);
    const lockedBy = threadId === null ? undefined : this.locks.get(threadId);
    if (lockedBy !== undefined && lockedBy !== session) return true;
    tables.transaction = session?.transaction ?? null;
    const isLocked = runIds.some((runId) => tables.isLocked(runId));
    tables.transaction = null;
    return isLocked;
  }

  private lockLimits(session: Session, ids: readonly string[]): boolean {
    const { transaction } = session;
    if (transaction === null) throw new Error('The locks of limits are those of a transaction.');
    const isPlanted = this.options.tables.has('a claim under a limit takes no lock');
    for (const id of ids) {
      const holder = isPlanted ? undefined : this.limitLocks.get(id);
      if (holder === session) continue;
      if (holder !== undefined) return false;
      if (!isPlanted) this.limitLocks.set(id, session);
      transaction.limits.push(id);
    }
    return true;
  }

  /** What a statement in a transaction has written is nobody else's to write until it ends. */
  private lockRows(session: Session, { name, values = [] }: Statement): void {
    const { tables } = this.options;
    const transaction = session.transaction!;
    const { threadId, runIds } = locksOf(tables, name, values);
    if (threadId !== null) {
      this.locks.set(threadId, session);
      transaction.locked.push(threadId);
    }
    transaction.rows.push(...runIds);
    if (transaction.rows.length > 0) tables.locking.add(transaction);
  }

  /** Its leader stops: the lock is free, and all others hear of it. */
  private notify(session: Session, [lockId, channel]: unknown[]): Record<string, unknown> {
    const wasHeld = session.advisoryLocks.delete(lockId);
    const listening = [...this.sessions].filter(({ channels }) => channels.has(channel as string));
    for (const { process, onNotify } of listening)
      if (onNotify) this.options.scheduler.after(this.delayOf(process), process, onNotify);
    this.options.observer?.notified(listening);
    return { pg_advisory_unlock: wasHeld, pg_notify: '' };
  }

  private tryLock(session: Session, id: unknown): boolean {
    const holder = [...this.sessions].find(({ advisoryLocks }) => advisoryLocks.has(id));
    if (holder !== undefined) return holder === session;
    session.advisoryLocks.add(id);
    this.options.trace(() => `${session.process.name}: leads ${String(id)}`);
    return true;
  }

  private lockStream(session: Session, statement: Statement): Record<string, unknown>[] {
    const threadId = statement.values![0] as string;
    const row = this.options.tables.streams.get(threadId);
    if (row === undefined) return [];
    this.lockRows(session, statement);
    const state = this.options.tables.stateOf(threadId);
    return [{ version: row.version, runIds: state.lifecycle === 'none' ? [] : state.runs.map(({ id }) => id) }];
  }

  /** Ends the session's transaction, and lets those go on that waited for it. */
  private finish(session: Session, commits: boolean): void {
    const { transaction } = session;
    if (transaction === null) return;
    session.transaction = null;
    const { tables } = this.options;
    for (const threadId of transaction.locked) this.locks.delete(threadId);
    for (const id of transaction.limits) this.limitLocks.delete(id);
    tables.locking.delete(transaction);
    tables.transaction = transaction;
    if (commits) for (const write of transaction.writes) write();
    tables.transaction = null;
    const { waiting } = this;
    this.waiting = [];
    for (const call of waiting) this.options.scheduler.after(0, null, () => this.arrive(call));
  }

  private hear(session: Session): void {
    const { scheduler } = this.options;
    session.lastHeardAt = scheduler.now;
    if (session.maxSilenceMs < Infinity)
      scheduler.after(session.maxSilenceMs, null, () => this.endIfSilent(session, session.maxSilenceMs));
  }

  private endIfSilent(session: Session, silenceMs: number): void {
    if (session.ended || session.lastHeardAt + silenceMs > this.options.scheduler.now) return;
    if (silenceMs < session.maxSilenceMs && session.transaction === null) return;
    this.end(session);
  }
}

const OF_STATEMENTS = ['statement lost', 'statement late', 'answer lost', 'crash before', 'crash after'] as const;
const TRACED = ['append', 'append-events', 'skip-delay', 'refuse-beyond-limits', 'admit-limited-runs'];

function describe({ name, values = [] }: Statement, rows: Record<string, unknown>[]): string {
  if (name === 'skip-delay') return `hasten ${String(values[0])}: ${rows.length}`;
  if (name === 'refuse-beyond-limits')
    return `may claim ${String(values[0])}? limited by ${String(rows[0]?.['limitedBy'])}`;
  if (name === 'admit-limited-runs') return `admits ${rows.map(({ runId }) => String(runId)).join(' ')}`;
  const events = JSON.parse(values[name === 'append' ? 6 : 5] as string) as {
    type: string;
    run_id: string | null;
    attempt: number | null;
  }[];
  const list = events.map(
    ({ type, run_id, attempt }) =>
      `${type}${run_id === null ? '' : `(${run_id}${attempt === null ? '' : `/${attempt}`})`}`,
  );
  const outcome = rows[0]?.['appended'] ? 'appended' : rows[0]?.['keySeen'] ? 'key seen' : 'refused';
  return `${String(values[0])} at ${String(values[1])}: ${list.join(' ')}: ${outcome}`;
}

function resultOf(answer: Answer): Result {
  return typeof answer === 'number' ? { rows: [], rowCount: answer } : { rows: answer, rowCount: answer.length };
}

function shortly({ name, text }: Statement): string {
  return name ?? text.slice(0, 30);
}

const away = (): Error => Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' });
const terminated = (): Error => new Error('Connection terminated unexpectedly');
