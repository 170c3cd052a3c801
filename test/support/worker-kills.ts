import { eventually, reportFigure, reportLatency } from '#testing';
import type { StandardSystem } from './standard-system.ts';
import { toldTimes } from './times.ts';

/** What has workers to lose. */
type Workers = Pick<StandardSystem, 'database' | 'workers' | 'startWorker'>;

/** A claim that a worker held when it was killed or stopped. */
export interface LostClaim {
  runId: string;
  attempt: number;
  /** By Date.now(): when its worker was killed. */
  lostAt: number;
}

/** How long after its loss a Run had its next event, and was claimed again, milliseconds. */
export interface Recovery {
  nextEventMs: number;
  claimedMs: number;
}

/**
 * What the worker process with this id held when it was lost (by Date.now()). From the streams, which still tell when the lease is over
 * before anybody looks.
 */
export async function claimsOf(
  { database, workers }: Pick<Workers, 'database' | 'workers'>,
  pid: number,
  lostAt: number,
): Promise<LostClaim[]> {
  const worker = workers.find((one) => one.pid === pid);
  const [, holder] = await worker!.waitForLine(/"holder":"([^"]+)".*"worker started"/);
  const { rows } = await database.pool.query<{ runId: string; attempt: number }>(
    `select claimed.run_id as "runId", claimed.attempt
     from events claimed
     where claimed.type = 'run.claimed' and claimed.data ->> 'holder' = $1
       and not exists (
         select from events ended
         where ended.thread_id = claimed.thread_id and ended.run_id = claimed.run_id
           and ended.version > claimed.version and ended.type = any ($2) and ended.occurred_at <= $3
       )`,
    [holder, ENDS_OF_A_CLAIM, new Date(lostAt)],
  );
  return rows.map((row) => ({ ...row, lostAt }));
}

const ENDS_OF_A_CLAIM = ['waiting', 'requeued', 'completed', 'failed', 'cancelled', 'expired'].map(
  (end) => `run.${end}`,
);

/** `kill -9`, and another worker in its place. Answers what it held, also when that is nothing. */
export async function killWorker(system: Workers, pid: number): Promise<LostClaim[]> {
  const { workers } = system;
  const place = workers.findIndex((one) => one.pid === pid);
  const lostAt = Date.now();
  expect(await workers[place]!.kill('SIGKILL')).toMatchObject({ signal: 'SIGKILL' });
  const lost = await claimsOf(system, pid, lostAt);
  workers[place] = await system.startWorker();
  return lost;
}

/** From the streams: each lost claim is taken back, and its Run claimed anew. Waits until that is so. */
export async function recoveriesOf(system: Pick<Workers, 'database'>, lost: readonly LostClaim[]): Promise<Recovery[]> {
  const find = async (): Promise<Recovery[] | null> => {
    const { rows } = await system.database.pool.query<Taken>(FIND_TAKEN, [
      lost.map(({ runId }) => runId),
      lost.map(({ attempt }) => attempt),
    ]);
    const isDone = rows.length === lost.length && rows.every(({ ended, claimedAt }) => ended || claimedAt !== null);
    if (!isDone) throw new Error(`of ${lost.length} Runs: ${JSON.stringify(rows)}`);
    return rows.flatMap(({ place, ended, takenAt, claimedAt }) => {
      const { lostAt } = lost[place - 1]!;
      return ended ? [] : { nextEventMs: Date.parse(takenAt!) - lostAt, claimedMs: Date.parse(claimedAt!) - lostAt };
    });
  };
  return eventually(find, { what: 'all Runs of lost workers are claimed again', timeoutMs: 30_000 });
}

interface Taken {
  place: number;
  /** An append that was under way came through and left the claim nothing to do. */
  ended: boolean;
  takenAt: string | null;
  claimedAt: string | null;
}

const FIND_TAKEN = `
  select place::integer,
         bool_or(e.attempt = lost.attempt and e.type in ('run.completed', 'run.waiting')) as ended,
         min(e.occurred_at) filter (where e.attempt = lost.attempt and e.type = 'run.requeued') as "takenAt",
         min(e.occurred_at) filter (where e.attempt = lost.attempt + 1 and e.type = 'run.claimed') as "claimedAt"
  from unnest($1::text[], $2::integer[]) with ordinality as lost (run_id, attempt, place)
  join run_summaries using (run_id)
  join events e on e.thread_id = run_summaries.thread_id and e.run_id = lost.run_id
  group by place`;

/** Prints them, and holds them against the bound. */
export function expectRecovered(boundMs: number, recoveries: readonly Recovery[], what: string): void {
  const nextEvent = recoveries.map(({ nextEventMs }) => nextEventMs);
  const claimed = recoveries.map(({ claimedMs }) => claimedMs);
  reportFigure(`${what}: next event after ${toldTimes(nextEvent)}; claimed again after ${toldTimes(claimed)}`);
  expect(recoveries.length).toBeGreaterThan(0);
  reportLatency(boundMs, nextEvent, `${what}: the next event came after`);
}
