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
 * - `alone`: it had no effect and must be sent alone, because groups are off, it is too large, or a member of its group failed.
 * - `unknown`: it was sent, and no response arrived in time.
 */
export type GroupResult = QueryResultRow[] | 'alone' | 'unknown';

interface Member {
  /** The place in its group. */
  order: string;
  statement: GroupedStatement;
  size: number;
  /** Until when its caller waits, by the monotonic performance.now(). */
  until: number;
  isSent: boolean;
  resolve: (result: GroupResult) => void;
  reject: (error: Error) => void;
}

/** A group that takes longer no longer occupies a lane, so that one slow statement or dead connection does not stop the others. */
const STALLED_MS = 1_000;

/**
 * Sends the statements of one process in groups (docs/adr/0038). A statement is sent immediately if fewer than `lanes` groups are in
 * flight. Otherwise it gathers with others until the first of these is answered.
 */
export class StatementGroups {
  private readonly waiting = new Set<Member>();
  private inFlight = 0;
  /** Groups that wait for a connection, and have no members yet. */
  private connecting = 0;

  constructor(
    private readonly pool: Pool,
    private readonly options: StatementGroupsOptions,
  ) {}

  /**
   * Sends a statement, which must not wait for locked rows. Members are sorted by `order`, so that groups of two processes that
   * need the same locks cannot deadlock. Waits `timeoutMs`, also if the other members wait longer. Throws DatabaseUnavailable
   * if nothing was sent.
   */
  async send(order: string, statement: GroupedStatement, timeoutMs = Infinity): Promise<GroupResult> {
    const size = statement.values.reduce((sum, value) => sum + (value?.length ?? 0), 0);
    if (this.options.lanes === 0 || size > MAX_MEMBER_SIZE) return 'alone';
    let timer: NodeJS.Timeout | undefined;
    const result = new Promise<GroupResult>((resolve, reject) => {
      const until = performance.now() + timeoutMs;
      const member: Member = { order, statement, size, until, isSent: false, resolve, reject };
      this.waiting.add(member);
      if (timeoutMs < Infinity) timer = setTimeout(() => this.giveUp(member), timeoutMs);
      this.fillLanes();
    });
    return result.finally(() => clearTimeout(timer));
  }

  private giveUp(member: Member): void {
    this.waiting.delete(member);
    if (member.isSent) member.resolve('unknown');
    else member.reject(new DatabaseUnavailable(new Error('timed out waiting for earlier statements')));
  }

  private fillLanes(): void {
    while (this.inFlight < this.options.lanes && this.connecting < this.waiting.size) {
      this.inFlight++;
      this.connecting++;
      let isCounted = true;
      const leaveLane = (): void => {
        if (!isCounted) return;
        isCounted = false;
        this.inFlight--;
        this.fillLanes();
      };
      const stalled = setTimeout(leaveLane, STALLED_MS);
      void this.sendNext().finally(() => {
        clearTimeout(stalled);
        leaveLane();
      });
    }
  }

  private async sendNext(): Promise<void> {
    let client: PoolClient;
    try {
      client = await this.pool.connect().catch(rethrowUnavailable);
      this.connecting--;
    } catch (error) {
      this.connecting--;
      return this.takeNext().forEach(({ reject }) => reject(error as Error));
    }
    // Those that came while the pool was busy are taken too.
    const members = this.takeNext();
    if (members.length === 0) return client.release();
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
    let size = 0;
    for (const member of this.waiting) {
      size += member.size;
      if (members.length === this.options.members || size > MAX_SIZE) break;
      member.isSent = true;
      members.push(member);
    }
    for (const member of members) this.waiting.delete(member);
    return members.sort((a, b) => (a.order === b.order ? 0 : a.order < b.order ? -1 : 1));
  }
}

/** A group waits as long as its most patient member. The others give up before. */
function timeoutOf(members: readonly Member[]): number | undefined {
  const until = Math.max(...members.map((member) => member.until));
  return until === Infinity ? undefined : Math.max(1, Math.ceil(until - performance.now()));
}
