import type { ClientBase, Pool } from 'pg';
import type { ThreadState } from '#domain';
import { namedStatement, withClient } from '#platform';
import { StreamCheck, type Invariant } from './check-stream.ts';
import { checkWork, type StoredWork } from './check-work.ts';
import { findUsageDrift } from './file-usage.ts';
import { findDifferences, type Difference } from './differences.ts';
import { after, FIRST, PAGE_EVENTS, readPage, type Page } from './read-page.ts';
import { inSnapshot } from './isolation.ts';

const READ_WORK = namedStatement(import.meta.dirname, 'read-work.sql');
const FIND_STRAY_WORK = namedStatement(import.meta.dirname, 'find-stray-work.sql');
const FIND_STRAY_FILES = namedStatement(import.meta.dirname, 'find-stray-files.sql');

export interface VerifyOptions {
  /** Checks only Threads after this one. */
  from?: string | undefined;
  /** The approximate number of events in a page. */
  pageEvents?: number | undefined;
  /** How many findings keep their message; all are counted. Default 100. */
  maxFindings?: number | undefined;
  /** Called after each page, with the counts so far. */
  onProgress?: ((progress: VerifyReport) => void) | undefined;
}

export interface Finding {
  /** Empty if the finding is not about a Thread. */
  threadId: string;
  invariant: Invariant;
  message: string;
}

export interface VerifyReport {
  streams: number;
  events: number;
  /** Events of types that this release does not know. They are allowed, but the rows of their Threads are not compared. */
  unknownEvents: number;
  /** The number of findings; `findings` may have fewer. */
  found: number;
  byInvariant: Partial<Record<Invariant, number>>;
  findings: Finding[];
  lastThreadId: string | null;
}

/**
 * Checks every stream and its stored rows against the invariants (docs/reliability.md#invariants). Reads each page from
 * one snapshot, so concurrent appends cause no false findings. Changes nothing and locks nothing.
 */
export async function verify(pool: Pool, options: VerifyOptions = {}): Promise<VerifyReport> {
  const { from, pageEvents = PAGE_EVENTS, onProgress } = options;
  const report = emptyReport(from ?? null);
  const collect = collector(report, options.maxFindings ?? 100);
  let first = from === undefined ? FIRST : after(from);
  await withClient(pool, async (client) => {
    const { rows } = await client.query<StrayWork>({ ...FIND_STRAY_WORK, values: [first] });
    for (const { threadId, runId } of rows) {
      collect(threadId)('work', `Run ${runId} has a row in run_work but is not live`);
    }
    const stray = await client.query<StrayFile>({ ...FIND_STRAY_FILES, values: [first] });
    for (const { threadId, fileId } of stray.rows)
      collect(threadId)('I12', `File ${fileId} belongs to a Thread that no longer exists`);
    for (const { organizationId, files, bytes, actualFiles, actualBytes } of await findUsageDrift(client)) {
      const counted = `${files} files with ${bytes} bytes are counted`;
      const message = `Organization ${organizationId}: ${counted}, but ${actualFiles} files with ${actualBytes} bytes exist`;
      collect('')('usage', message);
    }
    for (let isEnd = false; !isEnd;) {
      const page = await inSnapshot(client, () => verifyPage(client, { first, pageEvents }, report, collect));
      if (!page.isEnd) report.lastThreadId = page.last;
      onProgress?.(report);
      first = after(page.last);
      isEnd = page.isEnd;
    }
  });
  return report;
}

interface StrayFile {
  fileId: string;
  threadId: string;
}

interface StrayWork {
  runId: string;
  threadId: string;
}

type Collect = (threadId: string) => (invariant: Invariant, message: string) => void;

function emptyReport(lastThreadId: string | null): VerifyReport {
  return { streams: 0, events: 0, unknownEvents: 0, found: 0, byInvariant: {}, findings: [], lastThreadId };
}

function collector(report: VerifyReport, maxFindings: number): Collect {
  return (threadId) => (invariant, message) => {
    report.found++;
    report.byInvariant[invariant] = (report.byInvariant[invariant] ?? 0) + 1;
    if (report.findings.length < maxFindings) report.findings.push({ threadId, invariant, message });
  };
}

interface Place {
  first: string;
  pageEvents: number;
}

async function verifyPage(
  client: ClientBase,
  { first, pageEvents }: Place,
  report: VerifyReport,
  collect: Collect,
): Promise<Page> {
  const checks = new Map<string, StreamCheck>();
  const checkOf = (threadId: string): StreamCheck => {
    const check = checks.get(threadId) ?? new StreamCheck(collect(threadId));
    checks.set(threadId, check);
    return check;
  };
  const page = await readPage(client, first, {
    pageEvents,
    without: [],
    onEvents: (threadId, events) => {
      report.events += events.length;
      checkOf(threadId).add(events);
    },
  });
  const states = new Map<string, ThreadState>();
  for (const threadId of page.threadIds) {
    report.streams++;
    const check = checkOf(threadId);
    check.end();
    const { replayed } = check;
    report.unknownEvents += replayed?.unknownEvents ?? 0;
    // A newer release folded events that this one does not know.
    if (replayed === null || replayed.unknownEvents > 0) continue;
    states.set(threadId, replayed.state);
    for (const found of await findDifferences(await page.rowsOf(threadId), replayed)) {
      collect(threadId)(invariantOf(found), `${found.table} ${found.id} ${found.what}`);
    }
  }
  await verifyWork(client, states, collect);
  return page;
}

/** A state row has the stream's version, last id and last time (I2), and its fold (I7). */
function invariantOf({ table, columns }: Difference): Invariant {
  return table === 'streams' && columns.length > 0 && !columns.includes('state') ? 'I2' : 'I7';
}

async function verifyWork(client: ClientBase, states: Map<string, ThreadState>, collect: Collect): Promise<void> {
  const live = [...states.values()].flatMap((state) => (state.lifecycle === 'none' ? [] : state.runs));
  const { rows } = await client.query<StoredWork>({ ...READ_WORK, values: [live.map(({ id }) => id)] });
  const stored = new Map(rows.map((row) => [row.runId, { ...row, queueMs: Number(row.queueMs) }]));
  for (const [threadId, state] of states) checkWork(threadId, state, stored, collect(threadId));
}
