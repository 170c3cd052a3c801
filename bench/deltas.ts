import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { cpuOf, cpuOfFamily, parentOf } from '#testing';
import type { Bench } from './bench.ts';
import { withCleanUp } from './clean-up.ts';
import type { LatencyResult } from './latency-result.ts';
import { HttpConnection } from './load/http-connection.ts';
import { BASE_PATH } from './load/order.ts';
import { quantile, ROUNDS, spreadOf } from './measure.ts';
import { SIZES } from './sizes.ts';
import { install, startApi, startWorker, type Installation } from './spool.ts';

/** The time between two deltas of a Thread: 20 a second. */
const EVERY_MS = 50;
/** The goal for the p99. */
const BOUND_MS = 50;
/** Deltas of a Run that are not measured, because the Runs start together. */
const FIRST = 20;

/**
 * Many Threads stream deltas at the same time. Measures the time from the `occurredAt` of a delta to its arrival in the client. The
 * worker sets `occurredAt` just before it sends the append. Throws if a delta is lost, repeated or out of order.
 */
export function deltas({ services, profiled, addLatency }: Bench): Promise<void> {
  return withCleanUp(async (defer) => {
    const spool = await install(services, defer);
    const { streams, deltasOfStream } = SIZES;
    const api = await startApi(spool, defer, profiled, { STREAMS_PER_TOKEN: `${streams}` });
    const worker = startWorker(spool, defer, profiled, { WORKER_SLOTS: `${streams}` });
    const postmaster = await postmasterOf(spool.databaseUrl);
    const cpu = () => [cpuOf(api.pid), cpuOf(worker.pid), cpuOfFamily(postmaster)];
    const rounds: number[][] = [];
    for (let round = 0; round < ROUNDS; round++) {
      const [startedAt, before] = [performance.now(), cpu()];
      const followed = Array.from({ length: streams }, (_, i) => follow(api.origin, spool, i, deltasOfStream));
      const all = await Promise.all(followed);
      const times = all.flatMap((ofThread) => ofThread.slice(FIRST));
      const stored = all.flat().length;
      const perSecond = stored / ((performance.now() - startedAt) / 1_000);
      const [ofApi, ofWorker, ofPostgres] = cpu().map((ms, i) => ((ms - before[i]!) / stored).toFixed(3));
      process.stderr.write(
        `deltas: ${perSecond.toFixed(0)} a second, ${times.length} measured; CPU for each, with its part of the Run: ` +
          `api ${ofApi} ms, worker ${ofWorker} ms, PostgreSQL ${ofPostgres} ms\n`,
      );
      rounds.push(times);
      // The connections of the Threads before are closed.
      await delay(SIZES.settleMs / 10);
    }
    addLatency(summarise(`a delta from its append to its reader, ${streams} Threads`, rounds));
  });
}

/** Returns the pid of the server, which must be on this machine. */
async function postmasterOf(databaseUrl: string): Promise<number> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid');
    return parentOf(rows[0]!.pid);
  } finally {
    await client.end();
  }
}

function summarise(name: string, rounds: number[][]): LatencyResult {
  const all = rounds.flat();
  const p99Ms = quantile(all, 0.99);
  const spread = spreadOf(rounds.map((times) => quantile(times, 0.99)));
  const verdict = p99Ms <= BOUND_MS ? 'held' : 'missed';
  return { name, samples: all.length, p50Ms: quantile(all, 0.5), p99Ms, spread, boundMs: BOUND_MS, verdict };
}

/** A frame of a delta: its id, time and text. */
const DELTA = /^data: (\{.*"type":"agent\.message\.delta".*\})$/gm;

interface DeltaEntry {
  id: string;
  occurredAt: string;
  content: string;
}

/** Follows a Run that counts. Returns how long each delta took, milliseconds. */
async function follow(origin: string, spool: Installation, client: number, count: number): Promise<number[]> {
  const connection = await HttpConnection.open(origin);
  const headers = [`Authorization: Bearer ${spool.tokens[client % spool.tokens.length]}`];
  try {
    const text = `/pause ${EVERY_MS} /pieces ${count + FIRST}`;
    const body = JSON.stringify({
      userId: 'bench',
      input: { type: 'user.message', content: [{ type: 'text', text }] },
    });
    const path = `${BASE_PATH}/agents/${spool.agentId}/threads`;
    const created = await connection.send('POST', path, { headers, body, expect: 201 });
    const { thread } = JSON.parse(created) as { thread: { id: string } };
    const times: number[] = [];
    let [said, lastId, tail] = ['', '', ''];
    const onPiece = (piece: string): void => {
      const now = Date.now();
      const [frames, rest] = splitFrames(tail + piece);
      tail = rest;
      for (const [, json] of frames.matchAll(DELTA)) {
        const { id, occurredAt, content } = JSON.parse(json!) as DeltaEntry;
        if (id <= lastId) throw new Error(`delta ${id} of ${thread.id} is repeated or out of order`);
        lastId = id;
        said += content;
        times.push(now - Date.parse(occurredAt));
      }
    };
    const stream = `${BASE_PATH}/threads/${thread.id}/events/stream?until=idle`;
    await connection.send('GET', stream, { headers, expect: 200, onPiece });
    const expected = Array.from({ length: count + FIRST }, (_, i) => ` ${i + 1}`).join('');
    if (!said.endsWith(expected)) throw new Error(`a delta of ${thread.id} is lost: ${said.slice(0, 300)}`);
    return times;
  } finally {
    connection.close();
  }
}

/** Splits text into whole frames and the rest. */
function splitFrames(text: string): [frames: string, rest: string] {
  const end = text.lastIndexOf('\n\n') + 1;
  return [text.slice(0, end), text.slice(end)];
}
