import type { Pool, PoolClient, QueryResult } from 'pg';
import { sendGroup, type GroupedStatement } from '#platform';
import { eventually } from '#testing';
import { aloneName, type Session, type Statement } from './database-server.ts';
import { contentsOf, CONTENTS, textOf, WORK_ROWS } from './replay-contents.ts';
import type { Entry, ExecutedEntry, StatementLog } from './statement-log.ts';

type Row = Record<string, unknown>;

/**
 * Precedes `pg_catalog` in the search path, so that statements read the clock of the simulation; column defaults do not.
 * Both functions return the time of the statement, because no product statement with `now()` runs in a transaction.
 */
const CLOCK = `
  create schema simulated;
  create function simulated.now() returns timestamptz language sql stable
    as $$ select to_timestamp(current_setting('simulated.now')::float8) $$;
  create function simulated.clock_timestamp() returns timestamptz language sql volatile
    as $$ select to_timestamp(current_setting('simulated.now')::float8) $$;`;
const SEARCH_PATH = 'set search_path = simulated, pg_catalog, public';
/** Fails a statement that waits this long: only one statement runs at a time, so nothing releases its lock. */
const LOCK_TIMEOUT = `set lock_timeout = '1s'`;
/** Replaces the product's timeouts, because the replay may be slow between two statements. */
const TIMEOUTS = `set local lock_timeout = '1s'; set local idle_in_transaction_session_timeout = 0`;
/** Skips waiting for the disk, because no data has to survive the server. */
const FAST = 'set synchronous_commit = off';
/** Empties the tables without `truncate`, which waits for the disk for each table. */
const EMPTY = [
  ...CONTENTS.map(({ table }) => table),
  'run_work',
  'deleted_streams',
  'agent_versions',
  'agents',
  'organizations',
]
  .map((table) => `delete from ${table};`)
  .join(' ');

const LOCK_NOT_AVAILABLE = '55P03';

/** Replays the recorded statements of a simulation on PostgreSQL one by one, and compares the results. */
export class Replayer {
  /** The replayed statements with their outcomes, such as `append: appended`. */
  readonly seen = new Set<string>();
  private readonly sessions = new Map<Session | null, ReplayedSession>();
  private at = 0;

  constructor(private readonly pool: Pool) {}

  /** Prepares the database, once. */
  static async prepare(pool: Pool): Promise<void> {
    await pool.query(CLOCK);
  }

  /** Replays one simulation on empty tables. Returns the first difference, or null. */
  async replay(log: StatementLog): Promise<string | null> {
    await this.pool.query(`${FAST}; ${EMPTY}`);
    this.at = 0;
    try {
      for (const entry of log.entries) {
        this.at++;
        const difference = await this.replayEntry(entry);
        if (difference !== null) return `entry ${this.at} of ${log.entries.length}, ${difference}`;
      }
      return await this.compareContents(log);
    } finally {
      for (const session of this.sessions.values()) await session.end();
      this.sessions.clear();
    }
  }

  private async replayEntry(entry: Entry): Promise<string | null> {
    if (entry.kind === 'operator') {
      await this.pool.query(entry.text, entry.values);
      return null;
    }
    if (entry.kind === 'notified') {
      for (const session of entry.sessions) (await this.sessionOf(session)).expected++;
      return null;
    }
    if (entry.kind === 'ended') {
      await this.sessions.get(entry.session)?.end();
      this.sessions.delete(entry.session);
      return null;
    }
    const session = await this.sessionOf(entry.session);
    if (entry.kind === 'executed') return this.replayStatement(session, entry);
    const held = await session.isBlocked(entry.statement, entry.at, entry.limits);
    this.seen.add(`${nameOf(entry.statement)}: waits`);
    return held ? null : `${shown(entry.statement)} waits for a lock in the model, but not in PostgreSQL`;
  }

  private async replayStatement(session: ReplayedSession, entry: ExecutedEntry): Promise<string | null> {
    const { statement, work } = entry;
    const found = await session.execute(statement, entry.at);
    const difference = compare(entry, found);
    if (difference !== null) return `${shown(statement)}: ${difference}`;
    await this.hearNotifications();
    for (const outcome of outcomesOf(entry)) this.seen.add(outcome);
    if (work === null) return null;
    const stored = JSON.stringify((await this.pool.query({ text: WORK_ROWS, rowMode: 'array' })).rows);
    return stored === work ? null : `${shown(statement)} leaves run_work as\n${work} in the model, and as\n${stored}`;
  }

  private async hearNotifications(): Promise<void> {
    for (const session of this.sessions.values())
      if (session.heard !== session.expected)
        await eventually(() => session.heard === session.expected, { what: 'the notification is received' });
  }

  private async compareContents({ tables }: StatementLog): Promise<string | null> {
    for (const { table, query, rowsOf } of CONTENTS) {
      const stored = contentsOf((await this.pool.query<{ row: unknown }>(query)).rows.map(({ row }) => row));
      const expected = contentsOf(rowsOf(tables));
      if (stored !== expected) return `the table ${table} is\n${expected} in the model, and\n${stored} in PostgreSQL`;
    }
    return null;
  }

  private async sessionOf(session: Session | null): Promise<ReplayedSession> {
    const known = this.sessions.get(session);
    if (known !== undefined) return known;
    const opened = await ReplayedSession.open(this.pool);
    this.sessions.set(session, opened);
    return opened;
  }
}

/** A connection that represents one of the simulation. */
class ReplayedSession {
  /** Notifications that were received, and notifications that the model expects. */
  heard = 0;
  expected = 0;
  private setTo: number | null = null;
  private inTransaction = false;
  /** After a group failed, the pool must not lend the connection again. */
  private isBroken = false;
  private readonly hear = (): void => void this.heard++;

  private constructor(private readonly client: PoolClient) {
    client.on('notification', this.hear);
  }

  static async open(pool: Pool): Promise<ReplayedSession> {
    const client = await pool.connect();
    await client.query(`${SEARCH_PATH}; ${LOCK_TIMEOUT}; ${FAST}`);
    return new ReplayedSession(client);
  }

  async execute(statement: Statement, at: number): Promise<QueryResult<Row> | Error> {
    const { text, values } = statement;
    if (text === 'rollback' || text === 'commit') this.inTransaction = false;
    if (CONTROL.test(text)) {
      await this.client.query(text);
      if (text === 'rollback') this.setTo = null;
      if (text.startsWith('begin')) await this.client.query(TIMEOUTS);
      this.inTransaction ||= text.startsWith('begin');
      return NOTHING;
    }
    await this.setClock(at);
    if (statement.members !== undefined) return this.executeGroup(statement.members);
    const named = statement.name === undefined ? { text } : { text, name: statement.name };
    return this.client.query<Row>({ ...named, values: values ?? [] }).catch((error: unknown) => error as Error);
  }

  private async executeGroup(members: readonly GroupedStatement[]): Promise<QueryResult<Row> | Error> {
    try {
      const rows = await sendGroup(this.client, members);
      return { rows: [{ members: rows.map(([row]) => row) }], rowCount: 1 } as unknown as QueryResult<Row>;
    } catch (error) {
      this.isBroken = true;
      return error as Error;
    }
  }

  /** Returns whether the statement waits for a lock. Rolls it back, but keeps its limit locks, like the model. */
  async isBlocked(statement: Statement, at: number, limits: readonly string[]): Promise<boolean> {
    if (statement.name === 'lock-limits') return this.isBlockedByLimits(statement.values![0] as string[], limits);
    const { inTransaction } = this;
    await this.client.query(inTransaction ? 'savepoint probe' : 'begin');
    await this.client.query(`set local lock_timeout = '1ms'`);
    const outcome = await this.execute(statement, at);
    await this.client.query(inTransaction ? 'rollback to savepoint probe' : 'rollback');
    this.setTo = null;
    return codeOf(outcome) === LOCK_NOT_AVAILABLE;
  }

  private async isBlockedByLimits(ids: readonly string[], limits: readonly string[]): Promise<boolean> {
    for (const id of ids) {
      const { rows } = await this.client.query<{ held: boolean }>(
        `select pg_try_advisory_xact_lock(hashtextextended('concurrency limit ' || $1, 0)) as held`,
        [id],
      );
      if (rows[0]!.held !== limits.includes(id)) return false;
      if (!rows[0]!.held) return true;
    }
    return false;
  }

  async end(): Promise<void> {
    this.client.off('notification', this.hear);
    const isOver = this.client.query('rollback; select pg_advisory_unlock_all(); unlisten *').then(
      () => this.isBroken,
      (error: Error) => error,
    );
    this.client.release(await isOver);
  }

  private async setClock(at: number): Promise<void> {
    if (at === this.setTo) return;
    await this.client.query({
      name: 'set-clock',
      text: `select set_config('simulated.now', $1, false)`,
      values: [String(at / 1_000)],
    });
    this.setTo = at;
  }
}

/** Statements without a meaningful result. */
const CONTROL = /^(begin|commit|rollback|listen)/;
/** The statements that return the size of a transcript. */
const MEASURES = ['read-transcript-bytes', 'load-with-transcript'];

/** Returns a row without `bytes`, because the model does not know the size of what PostgreSQL stores (run-memory.int.spec.ts). */
function withoutSize({ bytes: _, small, ...row }: Row): Row {
  if (small === undefined || small === null) return row;
  const { size, ...more } = small as { size: Row };
  return { ...row, small: { ...more, size: withoutSize(size) } };
}
const NOTHING = { rows: [], rowCount: null } as unknown as QueryResult<Row>;

function compare({ statement, answer, sortKeys }: ExecutedEntry, found: QueryResult<Row> | Error): string | null {
  if (answer instanceof Error || found instanceof Error) {
    const [expected, code] = [codeOf(answer), codeOf(found)];
    if (expected === code) return null;
    return `the model returns ${expected ?? textOf(answer)}, PostgreSQL returns ${String(found instanceof Error ? found : textOf(found.rows))}`;
  }
  if (CONTROL.test(statement.text)) return null;
  const measures = MEASURES.includes(statement.name ?? '');
  const expected = measures ? answer.rows.map((text) => textOf(withoutSize(JSON.parse(text) as Row))) : answer.rows;
  const rows = found.rows.map((row) => textOf(measures ? withoutSize(row) : row));
  const isSame = sortKeys === null ? isSameSet(expected, rows) : isSameOrder(expected, sortKeys, rows);
  if (isSame && found.rowCount === answer.rowCount) return null;
  const only = (some: readonly string[], others: readonly string[]): string =>
    some.filter((one) => !others.includes(one)).join('\n') || 'the same in another order';
  return [
    `the model returns ${answer.rowCount} rows, of which only the model has:\n${only(expected, rows)}`,
    `PostgreSQL returns ${found.rowCount} rows, of which only PostgreSQL has:\n${only(rows, expected)}`,
  ].join('\n');
}

function isSameSet(expected: readonly string[], rows: readonly string[]): boolean {
  return expected.toSorted().join('\n') === rows.toSorted().join('\n');
}

/** Returns whether the order is the same. Rows with equal sort keys may come in any order. */
function isSameOrder(expected: readonly string[], sortKeys: readonly string[], rows: readonly string[]): boolean {
  const [model, stored] = [expected.map(placed), rows.map(placed)];
  const texts = model.map(({ text }) => text);
  if (
    !isSameSet(
      texts,
      stored.map(({ text }) => text),
    )
  )
    return false;
  const isInPlace = ({ text, place }: Placed, i: number): boolean =>
    place === model[i]!.place && sortKeys[texts.indexOf(text)] === sortKeys[i];
  return stored.every(isInPlace);
}

interface Placed {
  text: string;
  place: string;
}

/** Separates the columns of find-ready-runs.sql that depend on a row's place: rows with equal keys may swap places. */
function placed(row: string): Placed {
  const { turn, maybeMore, ...rest } = JSON.parse(row) as Row;
  return { text: textOf(rest), place: textOf([turn, maybeMore]) };
}

function codeOf(outcome: unknown): string | null {
  return outcome instanceof Error ? ((outcome as { code?: string }).code ?? outcome.message) : null;
}

/** Statements that return one row of flags. */
const FLAGS = [
  ...['append', 'append-events', 'find-appended', 'wake-delayed-runs', 'read-controls', 'refuse-beyond-limits'],
  'select pg_try_advisory_lock',
];

/** Returns the outcomes of a statement, or those of each member of a group, which REQUIRED can list. */
function outcomesOf(entry: ExecutedEntry): string[] {
  const { statement, answer } = entry;
  const own = `${nameOf(statement)}: ${outcomeOf(entry)}`;
  if (statement.members === undefined || answer instanceof Error) return [own];
  const { members } = JSON.parse(answer.rows[0]!) as { members: { appended: boolean }[] };
  const ofMembers = statement.members.map(
    (member, i) => `${aloneName(member)} in a group: ${members[i]!.appended ? 'appended' : 'nothing'}`,
  );
  return [own, ...ofMembers, ...(members.length > 1 ? ['group: several members'] : [])];
}

/** Returns a short name for the outcome of a statement. */
function outcomeOf({ statement, answer }: ExecutedEntry): string {
  if (answer instanceof Error) return codeOf(answer)!;
  if (CONTROL.test(statement.text)) return 'done';
  if (answer.rowCount === 0) return 'nothing';
  if (!FLAGS.includes(nameOf(statement))) return 'rows';
  const row = JSON.parse(answer.rows[0]!) as Row;
  const flags = Object.entries(row).filter(([flag, value]) => value && flag !== 'lockHeld');
  const words = flags.map(([flag, value]) => (typeof value === 'string' ? `${flag} ${value}` : flag));
  return words.join(', ') || 'nothing';
}

/** Returns the name of the statement's file, or its first words. */
function nameOf({ name, text }: Statement): string {
  return name ?? /^[^$(\n=<]*[^$(\n=< ]/.exec(text)?.[0] ?? text;
}

const shown = (statement: Statement): string => `${nameOf(statement)} ${textOf(statement.values ?? [])}`;
