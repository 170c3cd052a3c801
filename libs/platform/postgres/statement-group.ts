import type { Connection, PoolClient, Submittable } from 'pg';
import type { NamedStatement } from './sql.ts';

/** A named statement with its parameters as PostgreSQL's text. */
export interface GroupedStatement extends NamedStatement {
  values: (string | null)[];
}

/** A row as PostgreSQL's text, in the order of its columns. */
export type TextRow = (string | null)[];

/** Each connection with the names of the statements that were prepared on it. */
const prepared = new WeakMap<Connection, Set<string>>();

/**
 * Several statements in one write and one transaction: Bind and Execute of each, then a single Sync. If one fails, PostgreSQL skips
 * the rest and rolls all of them back.
 * https://www.postgresql.org/docs/15/protocol-flow.html#PROTOCOL-FLOW-EXT-QUERY
 */
export class StatementGroup implements Submittable {
  private readonly rows: TextRow[][] = [[]];

  /** pg reads `query_timeout` and replaces `callback` after a timeout. */
  constructor(
    readonly statements: readonly GroupedStatement[],
    readonly query_timeout: number | undefined,
    public callback: (error: Error | null, rows: TextRow[][]) => void,
  ) {}

  submit(connection: Connection): void {
    const names = prepared.get(connection) ?? new Set();
    prepared.set(connection, names);
    connection.stream.cork();
    for (const { name, text, values } of this.statements) {
      if (!names.has(name)) connection.parse({ name, text, types: [] }, true);
      names.add(name);
      connection.bind({ statement: name, values }, true);
      connection.execute(null, true);
    }
    connection.sync();
    connection.stream.uncork();
  }

  handleDataRow({ fields }: { fields: TextRow }): void {
    this.rows.at(-1)!.push(fields);
  }

  handleCommandComplete(): void {
    this.rows.push([]);
  }

  handleError(error: Error): void {
    this.callback(error, []);
    this.callback = () => undefined;
  }

  handleReadyForQuery(): void {
    this.callback(null, this.rows.slice(0, -1));
  }
}

/**
 * Sends the statements as a StatementGroup and returns the rows of each. Names must not be those of statements that are sent by
 * `query`. Throws what pg throws: then nothing is stored, unless the connection was lost, and the connection cannot be used again,
 * because PostgreSQL may have skipped a Parse.
 */
export function sendGroup(
  client: Pick<PoolClient, 'query'>,
  statements: readonly GroupedStatement[],
  timeoutMs?: number,
): Promise<TextRow[][]> {
  return new Promise((resolve, reject) => {
    const settle = (error: Error | null, rows: TextRow[][]) => (error === null ? resolve(rows) : reject(error));
    client.query(new StatementGroup(statements, timeoutMs, settle));
  });
}
