import type { CustomTypesConfig, Pool } from 'pg';
import { BOUNDS } from '#domain';
import {
  DatabaseUnavailable,
  JSONB_AS_TEXT,
  ownTurn,
  pauseIfLong,
  queryTimeout,
  rethrowUnavailable,
  StatementGroups,
  textOf,
  type GroupedValue,
  type NamedStatement,
} from '#platform';

/** Fewer than appends have members: a read that takes long delays those after it. */
const MEMBERS = 16;

const LARGE_UNITS = BOUNDS.transcripts.event.value;

export interface ReadOptions {
  /** How long to wait, milliseconds. Default: as the pool does. */
  timeoutMs?: number | undefined;
  /** Whether it may share a round trip with others (docs/adr/0038). Only for reads that take about a millisecond for every Thread. */
  gathers?: boolean;
  types?: CustomTypesConfig;
}

/** Sends reads over one pool, those that gather in groups. Throws DatabaseUnavailable. */
export class StoreReads {
  private readonly groups: StatementGroups;

  /** `lanes`: the most groups in flight. 0 sends each read alone. */
  constructor(
    private readonly pool: Pool,
    lanes: number,
  ) {
    this.groups = new StatementGroups(pool, { lanes, members: MEMBERS });
  }

  async read<Row>(statement: NamedStatement, values: GroupedValue[], options: ReadOptions = {}): Promise<Row[]> {
    const { timeoutMs = Infinity, gathers = false, types } = options;
    const until = performance.now() + timeoutMs;
    const how = types && { types };
    if (gathers) {
      const grouped = { ...statement, name: `${statement.name}-in-group`, values: values.map(textOf), ...how };
      const rows = await this.groups.send('', grouped, timeoutMs);
      if (typeof rows !== 'string') return rows as Row[];
    }
    const leftMs = until === Infinity ? undefined : until - performance.now();
    if (leftMs !== undefined && leftMs <= 0) throw new DatabaseUnavailable(new Error('timed out reading in a group'));
    try {
      const { rows } = await this.pool.query({
        ...statement,
        values,
        ...how,
        ...queryTimeout(leftMs && Math.ceil(leftMs)),
      });
      return rows as Row[];
    } catch (error) {
      return rethrowUnavailable(error);
    }
  }

  /** Reads events and parses their data in steps. Large data gets a separate turn of the event loop. */
  async readEvents<Row extends object>(
    statement: NamedStatement,
    values: GroupedValue[],
    options: ReadOptions = {},
  ): Promise<Row[]> {
    const rows = await this.read<Row & { data: unknown }>(statement, values, { ...options, types: JSONB_AS_TEXT });
    for (const row of rows) {
      if (typeof row.data !== 'string') continue;
      await (row.data.length > LARGE_UNITS ? ownTurn() : pauseIfLong());
      row.data = JSON.parse(row.data);
    }
    return rows;
  }
}
