import type { Connection, CustomTypesConfig, FieldDef, PoolClient, QueryResultRow, Submittable } from 'pg';
import { DEFAULT_TYPES } from './database.ts';
import type { NamedStatement } from './sql.ts';

/** A named statement that returns rows, with its parameters as PostgreSQL's text. */
export interface GroupedStatement extends NamedStatement {
  values: (string | null)[];
  /** How its columns are parsed; the same for each use of the name. Default: as in every query of the pool. */
  types?: CustomTypesConfig;
}

/** A parameter before it is text. An array has texts that need no quotes, such as ids. */
export type GroupedValue = string | number | boolean | readonly string[] | null;

/** Returns a parameter as PostgreSQL's text. */
export function textOf(value: GroupedValue): string | null {
  if (value === null) return null;
  return Array.isArray(value) ? `{${value.join(',')}}` : String(value);
}

/** A row as PostgreSQL's text, in the order of its columns. */
type TextRow = (string | null)[];

/** The columns of a statement, once PostgreSQL has described them. */
interface Prepared {
  types: CustomTypesConfig;
  columns: { name: string; parse: (value: string) => unknown }[];
}

/** Each connection with the statements that were prepared on it, by name. */
const preparedOn = new WeakMap<Connection, Map<string, Prepared>>();

/**
 * Several statements in one write and one transaction: Bind and Execute of each, then a single Sync. If one fails, PostgreSQL skips
 * the rest and rolls all of them back.
 * https://www.postgresql.org/docs/15/protocol-flow.html#PROTOCOL-FLOW-EXT-QUERY
 */
export class StatementGroup implements Submittable {
  private readonly rows: QueryResultRow[][] = [[]];
  /** The statements of this group, in order. */
  private members: Prepared[] = [];
  /** The first error of a parser. */
  private unreadable: Error | null = null;
  /** Statements that PostgreSQL describes in this group, in order. */
  private readonly undescribed: Prepared[] = [];

  /** pg reads `query_timeout` and replaces `callback` after a timeout. */
  constructor(
    readonly statements: readonly GroupedStatement[],
    readonly query_timeout: number | undefined,
    public callback: (error: Error | null, rows: QueryResultRow[][]) => void,
  ) {}

  submit(connection: Connection): void {
    const known = preparedOn.get(connection) ?? new Map<string, Prepared>();
    preparedOn.set(connection, known);
    connection.stream.cork();
    this.members = this.statements.map((statement) => {
      const prepared = known.get(statement.name) ?? this.prepare(connection, statement);
      known.set(statement.name, prepared);
      connection.bind({ statement: statement.name, values: statement.values }, true);
      connection.execute(null, true);
      return prepared;
    });
    connection.sync();
    connection.stream.uncork();
  }

  private prepare(connection: Connection, { name, text, types = DEFAULT_TYPES }: GroupedStatement): Prepared {
    connection.parse({ name, text, types: [] }, true);
    connection.describe({ type: 'S', name }, true);
    const prepared: Prepared = { types, columns: [] };
    this.undescribed.push(prepared);
    return prepared;
  }

  handleRowDescription({ fields }: { fields: FieldDef[] }): void {
    const prepared = this.undescribed.shift()!;
    prepared.columns = fields.map(({ name, dataTypeID }) => ({
      name,
      parse: prepared.types.getTypeParser(dataTypeID, 'text') as (value: string) => unknown,
    }));
  }

  handleDataRow({ fields }: { fields: TextRow }): void {
    const { columns } = this.members[this.rows.length - 1]!;
    try {
      const entries = columns.map(({ name, parse }, i) => {
        const value = fields[i] ?? null;
        return [name, value === null ? null : parse(value)] as const;
      });
      this.rows.at(-1)!.push(Object.fromEntries(entries));
    } catch (error) {
      // pg calls this from the socket's listener, where an error would end the process.
      this.unreadable ??= error as Error;
    }
  }

  handleCommandComplete(): void {
    this.rows.push([]);
  }

  handleError(error: Error): void {
    this.callback(error, []);
    this.callback = () => undefined;
  }

  handleReadyForQuery(): void {
    this.callback(this.unreadable, this.rows.slice(0, -1));
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
): Promise<QueryResultRow[][]> {
  return new Promise((resolve, reject) => {
    const settle = (error: Error | null, rows: QueryResultRow[][]) => (error === null ? resolve(rows) : reject(error));
    client.query(new StatementGroup(statements, timeoutMs, settle));
  });
}
