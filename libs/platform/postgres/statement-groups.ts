import type { Pool, PoolClient, QueryResultRow } from 'pg';
import { DatabaseUnavailable, isDatabaseUnavailable } from './database.ts';
import { rethrowUnavailable } from './transaction.ts';
import { sendGroup, type GroupedStatement } from './statement-group.ts';

export interface StatementGroupsOptions {
  /** The most groups in flight. 0 sends none. */
  lanes: number;
  /** The most statements of a group. */
  members: number;
}

/** Characters of parameters. Limits how long a group occupies the event loop, and what is sent again after an error. */
const MAX_SIZE = 256 * 1024;
/** Characters. A larger statement goes alone, so that the others do not wait for it. */
const MAX_MEMBER_SIZE = MAX_SIZE / 4;

/**
 * The result of a statement in a group: its rows, or why it has none.
 *
 * - `alone`: it has no effect. It is too large, or a member failed. Sent alone, it shows which.
 * - `unknown`: the connection was lost after sending.
 */
export type GroupResult = QueryResultRow[] | 'alone' | 'unknown';

interface Member {
  /** The place in its group. */
  order: string;
  statement: GroupedStatement;
  size: number;
  /** Until when its caller waits, by the monotonic performance.now(). */
  until: number;
  resolve: (result: GroupResult) => void;
  reject: (error: Error) => void;
}

/**
 * Sends the statements of one process in groups (docs/adr/0038). A statement is sent immediately if fewer than `lanes` groups are in
 * flight. Otherwise it gathers with others until the first of these is answered.
 */
export class StatementGroups {
  private waiting: Member[] = [];
  private inFlight = 0;

  constructor(
    private readonly pool: Pool,
    private readonly options: StatementGroupsOptions,
  ) {}

  /**
   * Sends a statement that waits for no row that another transaction has locked. Members are in the order of `order`, so that
   * groups of two processes that share a lock cannot deadlock. Waits `timeoutMs`. Throws DatabaseUnavailable if nothing was sent.
   */
  async send(order: string, statement: GroupedStatement, timeoutMs = Infinity): Promise<GroupResult> {
    const size = statement.values.reduce((sum, value) => sum + (value?.length ?? 0), 0);
    if (this.options.lanes === 0 || size > MAX_MEMBER_SIZE) return 'alone';
    return new Promise((resolve, reject) => {
      this.waiting.push({ order, statement, size, until: performance.now() + timeoutMs, resolve, reject });
      this.fillLanes();
    });
  }

  private fillLanes(): void {
    while (this.inFlight < this.options.lanes && this.waiting.length > 0) {
      this.inFlight++;
      void this.sendNext().finally(() => {
        this.inFlight--;
        this.fillLanes();
      });
    }
  }

  private async sendNext(): Promise<void> {
    const members = this.takeNext();
    if (members.length === 0) return;
    let client: PoolClient;
    try {
      client = await this.pool.connect().catch(rethrowUnavailable);
    } catch (error) {
      return members.forEach(({ reject }) => reject(error as Error));
    }
    try {
      const statements = members.map(({ statement }) => statement);
      const rows = await sendGroup(client, statements, timeoutOf(members));
      client.release();
      members.forEach(({ resolve }, i) => resolve(rows[i] ?? 'alone'));
    } catch (error) {
      client.release(true);
      const result = isDatabaseUnavailable(error) ? 'unknown' : 'alone';
      for (const { resolve } of members) resolve(result);
    }
  }

  /** Takes the first that fit into one group. */
  private takeNext(): Member[] {
    const members: Member[] = [];
    const now = performance.now();
    let size = 0;
    let taken = 0;
    for (const member of this.waiting) {
      size += member.size;
      if (members.length === this.options.members || size > MAX_SIZE) break;
      taken++;
      if (member.until > now) members.push(member);
      else member.reject(new DatabaseUnavailable(new Error('timed out waiting for earlier statements')));
    }
    this.waiting = this.waiting.slice(taken);
    return members.sort((a, b) => (a.order < b.order ? -1 : 1));
  }
}

/** A group waits as long as its least patient member. After that, each member is on its own. */
function timeoutOf(members: readonly Member[]): number | undefined {
  const until = Math.min(...members.map((member) => member.until));
  return until === Infinity ? undefined : Math.max(1, Math.ceil(until - performance.now()));
}
