import type { Pool } from 'pg';
import type { Overview } from '#contract';
import { namedStatement, redisUrlOf, rethrowUnavailable } from '#platform';
import { askRedis, sumOf } from './ask-redis.ts';
import { problemsOf, type FoundRuns } from './overview-problems.ts';
import { seriesOf, wholeOf, type Part, type Window } from './overview-series.ts';
import { readQueue, type QueueParts } from './read-queue.ts';
import { firstRunIdSince } from './run-ids.ts';

const sql = (name: string): string => namedStatement(`${import.meta.dirname}/queries`, `overview-${name}.sql`).text;

const READ_DATABASE = sql('database');
const READ_RUNS = sql('runs');
const READ_FAILURES = sql('failures');
const READ_PROBLEMS = sql('problems');

/** How many parts a window has: so one of n minutes has parts of n seconds. */
const PARTS = 60;
/** How old an answer may be, milliseconds. */
const MIN_AGE_MS = 1_000;
/** One that took long is kept for so many times as long: reading it never takes more than that part of a connection's time. */
const AGE_FACTOR = 10;
/** For each thing that Redis is asked, milliseconds. */
const REDIS_PATIENCE_MS = 1_000;

/**
 * Reads the overview of a window of so many minutes. It is polled by every open page: those that ask for the same window share
 * an answer. Throws DatabaseUnavailable; what else is away is told in the answer.
 */
export function overviews(parts: QueueParts): (windowMinutes: number) => Promise<Overview> {
  const kept = new Map<number, { answer: Promise<Overview>; until: number }>();
  return (windowMinutes) => {
    const now = performance.now();
    for (const [minutes, { until }] of kept) if (until <= now) kept.delete(minutes);
    const known = kept.get(windowMinutes);
    if (known !== undefined) return known.answer;
    const entry = { answer: readOverview(parts, windowMinutes), until: Infinity };
    kept.set(windowMinutes, entry);
    const keepFor = (ms: number): void => void (entry.until = performance.now() + ms);
    entry.answer.then(
      () => keepFor(Math.max(MIN_AGE_MS, AGE_FACTOR * (performance.now() - now))),
      () => keepFor(0),
    );
    return entry.answer;
  };
}

async function readOverview(parts: QueueParts, windowMinutes: number): Promise<Overview> {
  const { pool, config } = parts;
  // Beside the database, which is asked one thing after the other: a page that is open takes one connection of the pool.
  const asked = Promise.all([readQueue(parts), readRedis(redisUrlOf(config))]);
  asked.catch(() => undefined); // told below, where the database has not failed first
  const { at, ...database } = await readDatabase(pool);
  const window = windowOf(at, windowMinutes);
  const rows = await read<Part>(pool, READ_RUNS, [window.since, firstRunIdSince(window.since), window.seconds]);
  const failures = await read<Overview['failures'][number]>(pool, READ_FAILURES, [window.since]);
  const found = await read<FoundRuns>(pool, READ_PROBLEMS, [window.since]);
  const [queue, redis] = await asked;
  const { runs, startLatency } = wholeOf(rows, queue);
  return {
    at,
    windowMinutes,
    bucketSeconds: window.seconds,
    problems: problemsOf({ found, queue, database, redis }),
    runs,
    series: seriesOf(rows, window),
    startLatency,
    failures,
    queue,
    database,
    redis,
  };
}

/**
 * The parts begin at multiples of their length and the last one is not over yet, so that what is drawn of them stays in its place
 * from one answer to the next.
 */
function windowOf(at: string, windowMinutes: number): Window {
  const seconds = (windowMinutes * 60) / PARTS;
  const last = Math.floor(Date.parse(at) / 1_000 / seconds) * seconds;
  const since = new Date((last - (PARTS - 1) * seconds) * 1_000).toISOString();
  return { since, seconds, parts: PARTS };
}

async function read<Row extends object>(pool: Pool, text: string, values: unknown[]): Promise<Row[]> {
  return (await pool.query<Row>({ text, values }).catch(rethrowUnavailable)).rows;
}

async function readDatabase(pool: Pool): Promise<Overview['database'] & { at: string }> {
  // The second time on a connection that is open; a hiccup of one of the two says nothing.
  const latencyMs = Math.min(await nothingTakes(pool), await nothingTakes(pool));
  const [row] = await read<Omit<Overview['database'], 'latencyMs'> & { at: string }>(pool, READ_DATABASE, []);
  return { ...row!, latencyMs };
}

async function nothingTakes(pool: Pool): Promise<number> {
  const askedAt = performance.now();
  await read(pool, 'select', []);
  return performance.now() - askedAt;
}

async function readRedis(url: string | undefined): Promise<Overview['redis']> {
  if (url === undefined) return null;
  return askRedis(url, REDIS_PATIENCE_MS).then(
    (masters) => ({ status: 'ok' as const, version: masters[0].version, ...sumOf(masters) }),
    () => ({ status: 'away' as const, version: null, latencyMs: null, usedBytes: null }),
  );
}
