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

/** The parts of a window. A window of n minutes has parts of n seconds. */
const PARTS = 60;
/** How long an overview is at least cached, milliseconds. */
const MIN_AGE_MS = 1_000;
/** An overview is cached for this multiple of its read time, which limits the load on a connection to about a tenth. */
const AGE_FACTOR = 10;
/** Timeout of each Redis command, milliseconds. */
const REDIS_PATIENCE_MS = 1_000;

/**
 * Returns a reader of overviews. Requests for the same window share a read, because every open page polls it. Throws
 * DatabaseUnavailable. The overview itself reports other unavailable dependencies.
 */
export function overviews(parts: QueueParts): (windowMinutes: number) => Promise<Overview> {
  const cached = new Map<number, { overview: Promise<Overview>; until: number }>();
  return (windowMinutes) => {
    const now = performance.now();
    for (const [minutes, { until }] of cached) if (until <= now) cached.delete(minutes);
    const known = cached.get(windowMinutes);
    if (known !== undefined) return known.overview;
    const entry = { overview: readOverview(parts, windowMinutes), until: Infinity };
    cached.set(windowMinutes, entry);
    const keepFor = (ms: number): void => void (entry.until = performance.now() + ms);
    entry.overview.then(
      () => keepFor(Math.max(MIN_AGE_MS, AGE_FACTOR * (performance.now() - now))),
      () => keepFor(0),
    );
    return entry.overview;
  };
}

async function readOverview(parts: QueueParts, windowMinutes: number): Promise<Overview> {
  const { pool, config } = parts;
  // The other queries run one after the other, so that an overview takes few connections of the pool.
  const beside = Promise.all([readQueue(parts), readRedis(redisUrlOf(config))]);
  beside.catch(() => undefined); // awaited below, unless a query fails first
  const { at, ...database } = await readDatabase(pool);
  const window = windowOf(at, windowMinutes);
  const rows = await read<Part>(pool, READ_RUNS, [window.since, firstRunIdSince(window.since), window.seconds]);
  const failures = await read<Overview['failures'][number]>(pool, READ_FAILURES, [window.since]);
  const found = await read<FoundRuns>(pool, READ_PROBLEMS, [window.since]);
  const [queue, redis] = await beside;
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

/** Aligns the parts to multiples of their length, so that a chart of them stays in place between polls. The last is incomplete. */
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
  // The faster of two, because the first may open a connection or be a single slow one.
  const latencyMs = Math.min(await measureLatency(pool), await measureLatency(pool));
  const [row] = await read<Omit<Overview['database'], 'latencyMs'> & { at: string }>(pool, READ_DATABASE, []);
  return { ...row!, latencyMs };
}

async function measureLatency(pool: Pool): Promise<number> {
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
