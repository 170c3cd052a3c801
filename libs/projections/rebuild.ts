import type { ClientBase, Pool } from 'pg';
import { namedStatement, withClient } from '#platform';
import { withColumns } from './columns.ts';
import { repairUsage } from './file-usage.ts';
import { findDifferences, type Difference } from './differences.ts';
import {
  after,
  FIRST,
  NOT_FOLDED,
  PAGE_EVENTS,
  readPage,
  readThread,
  type EventReader,
  type StoredRows,
} from './read-page.ts';
import { emptyReplay, replay, type Replay } from './replay.ts';
import { behindLocks, inSnapshot } from './isolation.ts';

const LOCK_STREAMS = namedStatement(import.meta.dirname, 'lock-streams.sql');
const WRITE_ROWS = withColumns(namedStatement(import.meta.dirname, 'write-rows.sql'));

export interface RebuildOptions {
  /** Continues after this Thread: `lastThreadId` of a rebuild that was stopped. */
  from?: string | undefined;
  /** The approximate number of events in a page. */
  pageEvents?: number | undefined;
  /** Called after each page, with the counts so far. */
  onProgress?: ((progress: RebuildReport) => void) | undefined;
}

export interface RebuildReport {
  streams: number;
  events: number;
  /** Rows that differed from their stream and were repaired. */
  differences: number;
  byTable: Record<Difference['table'] | 'file_usage', number>;
  /** Threads that differ and were not changed, because this release does not understand all their events. */
  left: number;
  leftThreadIds: string[];
  /** The last finished Thread; null before the first. */
  lastThreadId: string | null;
}

/** How many ids of unchanged Threads a report names. */
const NAMED = 100;

/**
 * Folds every stream again, page by page, and writes the folded state row and summaries if the stored ones differ. Appends
 * continue meanwhile. Locks only Threads that differ, and only while it writes their rows; readers see the old row or the
 * new one. Corrects wrong file counters.
 */
export async function rebuild(pool: Pool, options: RebuildOptions = {}): Promise<RebuildReport> {
  const { from, pageEvents = PAGE_EVENTS, onProgress } = options;
  const report: RebuildReport = {
    streams: 0,
    events: 0,
    differences: 0,
    byTable: { streams: 0, thread_summaries: 0, run_summaries: 0, file_usage: 0 },
    left: 0,
    leftThreadIds: [],
    lastThreadId: from ?? null,
  };
  await withClient(pool, async (client) => {
    report.byTable.file_usage = report.differences = await repairUsage(client);
    let first = from === undefined ? FIRST : after(from);
    for (let isEnd = false; !isEnd;) {
      const replays = new Replays(NOT_FOLDED, pageEvents);
      const page = await inSnapshot(client, () => readPage(client, first, replays));
      const wrong: Checked[] = [];
      for (const threadId of page.threadIds) {
        const checked = await replays.check(await page.rowsOf(threadId));
        if (isWrong(checked)) wrong.push(checked);
        report.streams++;
        report.events += checked.replayed?.version ?? 0;
      }
      if (wrong.length > 0) await repair(client, wrong, report);
      if (!page.isEnd) report.lastThreadId = page.last;
      onProgress?.(report);
      first = after(page.last);
      isEnd = page.isEnd;
    }
  });
  return report;
}

interface Checked {
  rows: StoredRows;
  /** Null if the events cannot be folded. */
  replayed: Replay | null;
  differences: Difference[];
}

const isWrong = ({ replayed, differences }: Checked): boolean => replayed === null || differences.length > 0;

/** The replays of the Threads of a page, while the page is read. */
class Replays implements EventReader {
  private readonly replays = new Map<string, Replay | null>();

  constructor(
    readonly without: EventReader['without'],
    readonly pageEvents: number,
  ) {}

  readonly onEvents: EventReader['onEvents'] = (threadId, events) => {
    const before = this.replays.get(threadId);
    if (before !== null) this.replays.set(threadId, tryReplay(before ?? emptyReplay, events));
  };

  async check(rows: StoredRows): Promise<Checked> {
    const replayed = this.replays.get(rows.threadId);
    if (replayed === null) return { rows, replayed, differences: [] };
    const whole = withHead(replayed ?? emptyReplay, rows);
    return { rows, replayed: whole, differences: await findDifferences(rows, whole) };
  }
}

/** Sets the end of the stream from the row that came with the state row, because the last event may have been skipped. */
function withHead(replayed: Replay, { stream, head }: StoredRows): Replay {
  if (stream === null) return replayed;
  return { ...replayed, ...(head ?? { version: 0, lastEventId: null, lastOccurredAt: null }) };
}

/** Returns null for events that this release cannot fold. Another release may have written them. */
function tryReplay(before: Replay, events: Parameters<typeof replay>[1]): Replay | null {
  try {
    return replay(before, events);
  } catch {
    return null;
  }
}

async function repair(client: ClientBase, wrong: Checked[], report: RebuildReport): Promise<void> {
  await behindLocks(client, async () => {
    const ids = wrong.map(({ rows }) => rows.threadId);
    const locked = await client.query<{ threadId: string; version: number }>({ ...LOCK_STREAMS, values: [ids] });
    const versions = new Map(locked.rows.map(({ threadId, version }) => [threadId, version]));
    const repairs: Understood[] = [];
    for (const seen of wrong) {
      const { threadId, stream } = seen.rows;
      // If the version is unchanged, nothing was written since the check. Otherwise checks again under the lock.
      const isStill = stream !== null && versions.get(threadId) === stream.version;
      const current = isStill ? seen : await checkAgain(client, threadId);
      if (isUnderstood(current)) repairs.push(current);
      else leave(threadId, report);
    }
    await client.query({ ...WRITE_ROWS, values: writeValues(repairs) });
    for (const { table } of repairs.flatMap(({ differences }) => differences)) {
      report.byTable[table]++;
      report.differences++;
    }
  });
}

async function checkAgain(client: ClientBase, threadId: string): Promise<Checked> {
  const replays = new Replays([], PAGE_EVENTS);
  return replays.check(await readThread(client, threadId, replays));
}

type Understood = Checked & { replayed: Replay };

/** Returns false if a newer release may have written the events: an older one would write wrong rows. */
function isUnderstood(checked: Checked): checked is Understood {
  return checked.replayed !== null && checked.replayed.unknownEvents === 0;
}

function leave(threadId: string, report: RebuildReport): void {
  report.left++;
  if (report.leftThreadIds.length < NAMED) report.leftThreadIds.push(threadId);
}

/** The parameters of write-rows.sql. */
function writeValues(repairs: Understood[]): unknown[] {
  const streams: object[] = [];
  const threads: object[] = [];
  const runs: object[] = [];
  const gone: Record<Difference['table'], string[]> = { streams: [], thread_summaries: [], run_summaries: [] };
  const written = new Set<string>();
  for (const { replayed, differences } of repairs) {
    for (const { table, id } of differences) {
      const row = foldedRow(table, id, replayed);
      if (row === null) gone[table].push(id);
      else ({ streams, thread_summaries: threads, run_summaries: runs })[table].push(row);
      if (row !== null && table === 'run_summaries') written.add(id);
    }
  }
  // A Run that was stored under another Thread is missing here and should not exist there. Moves it instead of deleting it.
  const runsGone = gone.run_summaries.filter((id) => !written.has(id));
  const rows = [streams, threads, runs].map((each) => JSON.stringify(each));
  return [...rows, gone.streams, gone.thread_summaries, runsGone];
}

function foldedRow(table: Difference['table'], id: string, replayed: Replay): object | null {
  const { version, lastEventId, lastOccurredAt, state, summaries } = replayed;
  switch (table) {
    case 'streams':
      if (version === 0) return null;
      return { thread_id: id, version, last_event_id: lastEventId, last_occurred_at: lastOccurredAt, state };
    case 'thread_summaries':
      return summaries.thread;
    case 'run_summaries':
      return summaries.runs.get(id) ?? null;
  }
}
