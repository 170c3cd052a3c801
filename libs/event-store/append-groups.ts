import type { Pool, PoolClient } from 'pg';
import {
  DatabaseUnavailable,
  isDatabaseUnavailable,
  rethrowUnavailable,
  sendGroup,
  type GroupedStatement,
} from '#platform';

/** Groups that a process has in flight. Two keep PostgreSQL busy while one is being answered. */
export const LANES = 2;
const MAX_MEMBERS = 64;
/** Characters of parameters. Limits how long a group occupies the event loop, and what is sent again after an error. */
const MAX_SIZE = 256 * 1024;
/** Characters. A larger append goes alone, so that the others do not wait for it. */
const MAX_MEMBER_SIZE = MAX_SIZE / 4;

/**
 * The result of an append in a group.
 *
 * - `alone`: nothing is stored. It conflicts, would have waited for a lock, or a member failed. Sent alone, it returns which.
 * - `unknown`: the connection was lost after sending.
 */
export type GroupResult = 'appended' | 'alone' | 'unknown';

interface Member {
  threadId: string;
  statement: GroupedStatement;
  size: number;
  /** Until when its caller waits, by the monotonic performance.now(). */
  until: number;
  resolve: (result: GroupResult) => void;
  reject: (error: Error) => void;
}

/**
 * Commits the appends of one process in groups (docs/adr/0038). An append is sent immediately if fewer than `lanes` groups are in
 * flight. Otherwise it gathers with others until the first of these is answered.
 */
export class AppendGroups {
  private waiting: Member[] = [];
  private inFlight = 0;

  constructor(
    private readonly pool: Pool,
    private readonly lanes: number,
  ) {}

  /**
   * Sends a statement that waits for no lock and returns one row, whose last column says whether it appended. Waits `timeoutMs`.
   * Throws DatabaseUnavailable if nothing was sent.
   */
  async send(threadId: string, statement: GroupedStatement, timeoutMs = Infinity): Promise<GroupResult> {
    const size = statement.values.reduce((sum, value) => sum + (value?.length ?? 0), 0);
    if (this.lanes === 0 || size > MAX_MEMBER_SIZE) return 'alone';
    return new Promise((resolve, reject) => {
      this.waiting.push({ threadId, statement, size, until: performance.now() + timeoutMs, resolve, reject });
      this.fillLanes();
    });
  }

  private fillLanes(): void {
    while (this.inFlight < this.lanes && this.waiting.length > 0) {
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
      members.forEach(({ resolve }, i) => resolve(rows[i]?.[0]?.at(-1) === 't' ? 'appended' : 'alone'));
    } catch (error) {
      client.release(true);
      const result = isDatabaseUnavailable(error) ? 'unknown' : 'alone';
      for (const { resolve } of members) resolve(result);
    }
  }

  /** Takes the first that fit into one group, in the order of their Threads, so that groups of two processes cannot deadlock. */
  private takeNext(): Member[] {
    const members: Member[] = [];
    const now = performance.now();
    let size = 0;
    let taken = 0;
    for (const member of this.waiting) {
      size += member.size;
      if (members.length === MAX_MEMBERS || size > MAX_SIZE) break;
      taken++;
      if (member.until > now) members.push(member);
      else member.reject(new DatabaseUnavailable(new Error('timed out waiting for earlier appends')));
    }
    this.waiting = this.waiting.slice(taken);
    return members.sort((a, b) => (a.threadId < b.threadId ? -1 : 1));
  }
}

/** A group waits as long as its least patient member. After that, each member looks whether it was stored. */
function timeoutOf(members: readonly Member[]): number | undefined {
  const until = Math.min(...members.map((member) => member.until));
  return until === Infinity ? undefined : Math.max(1, Math.ceil(until - performance.now()));
}
