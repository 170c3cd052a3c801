import type { Result, ServerObserver, Session, Statement } from './database-server.ts';
import { textOf } from './replay-contents.ts';
import type { Tables } from './tables.ts';

/** One action of the simulated database. */
export type Entry =
  | ExecutedEntry
  | { kind: 'blocked'; at: number; session: Session | null; statement: Statement; limits: readonly string[] }
  | { kind: 'notified'; sessions: readonly Session[] }
  | { kind: 'ended'; session: Session }
  | { kind: 'operator'; text: string; values: unknown[] };

export interface ExecutedEntry {
  kind: 'executed';
  /** Milliseconds of the database's clock. */
  at: number;
  session: Session | null;
  statement: Statement;
  /** Rows as JSON (`textOf`), because the receiver may change the row objects. */
  answer: { rows: string[]; rowCount: number } | Error;
  /** The sort keys of the rows. Rows with equal keys may come in any order. Null if the statement does not sort. */
  sortKeys: string[] | null;
  /** The rows of `run_work` afterwards, as JSON. Null if they have not changed. */
  work: string | null;
}

/** Records the actions of the simulated database in order, for a replay on PostgreSQL (replay.ts). */
export class StatementLog implements ServerObserver {
  readonly entries: Entry[] = [];
  private recorded: Tables | null = null;
  private work = '[]';

  /** The tables of the simulation. */
  get tables(): Tables {
    if (this.recorded === null) throw new Error('Nothing was recorded.');
    return this.recorded;
  }

  watch(tables: Tables): this {
    this.recorded = tables;
    return this;
  }

  readonly operator = (text: string, values: unknown[]): void => {
    this.entries.push({ kind: 'operator', text, values });
  };

  executed(session: Session | null, statement: Statement, answer: Result | Error): void {
    const { tables } = this;
    const work = workOf(tables);
    const sortKeys = answer instanceof Error ? null : sortKeysOf(tables, statement, answer);
    const changed = work === this.work ? null : work;
    const copy = answer instanceof Error ? answer : { ...answer, rows: answer.rows.map(textOf) };
    this.entries.push({ kind: 'executed', at: tables.now, session, statement, answer: copy, sortKeys, work: changed });
    this.work = work;
  }

  executedStatements(): ExecutedEntry[] {
    return this.entries.filter((entry) => entry.kind === 'executed');
  }

  blocked(session: Session | null, statement: Statement, limits: readonly string[]): void {
    this.entries.push({ kind: 'blocked', at: this.tables.now, session, statement, limits });
  }

  notified(sessions: readonly Session[]): void {
    this.entries.push({ kind: 'notified', sessions });
  }

  ended(session: Session): void {
    this.entries.push({ kind: 'ended', session });
  }
}

/** The columns of `run_work` in the order of WORK_ROWS (replay.ts). */
function workOf({ work }: Tables): string {
  const rows = [...work.values()].map((row) => [
    ...[row.runId, row.threadId, row.organizationId, row.agentId, row.state, row.dispatch, row.attempt, row.holder],
    ...[row.dueAt, row.since, row.queueMs, row.workLeft, row.workUntil, row.limitedBy, row.queueLeft],
  ]);
  return JSON.stringify(rows.toSorted(([a], [b]) => (String(a) < String(b) ? -1 : 1)));
}

function sortKeysOf({ work }: Tables, { name }: Statement, { rows }: Result): string[] | null {
  const stored = rows.map(({ runId }) => work.get(runId as string));
  if (name === 'find-due-runs') return stored.map((row) => String(row?.dueAt));
  if (name === 'find-ready-runs') return stored.map((row, i) => String([rows[i]!.hasSlot, row?.since]));
  if (name === 'find-limited-organizations') return rows.map(({ id }) => id as string);
  if (name === 'read-transcript' || name === 'read-stopped-texts') return rows.map(({ version }) => String(version));
  return null;
}
