import type { Database } from '#platform';
import { reportFigure } from '#testing';
import { expectHealthy, expectStored } from './checks.ts';
import { inParallel, type Acknowledged, type ThreadAnswer } from './client.ts';
import { GIVE_UP_MS, OUTCOMES, type KeyedClient, type KeyedRequest, type Sent } from './keyed-client.ts';
import type { Pod } from './pod.ts';
import type { Random } from './random.ts';

/** What happens to the first request of a create. */
export const KILLS = ['killed after COMMIT', 'killed as the append was sent', 'killed at any time'] as const;
export const LOSSES = ['answer lost on its way to the client', 'answer lost on its way from PostgreSQL'] as const;
export type Fault = (typeof KILLS)[number] | (typeof LOSSES)[number];

const SENDS = 3;
const CONNECTIONS = 16;

export interface Load {
  pods: readonly Pod[];
  client: KeyedClient;
  database: Database;
  request: (i: number) => KeyedRequest;
  /** By the number of the create. */
  faults?: ReadonlyMap<number, Fault>;
}

/** Which creates meet which fault: one kill a batch, so that there is load around each; losses anywhere. */
export function planFaults(random: Random, count: number, kills: number, losses: number): Map<number, Fault> {
  const faults = new Map<number, Fault>();
  for (const i of random.sample(losses, count)) faults.set(i, random.pick(LOSSES));
  const batch = Math.floor(count / kills);
  // Early in the batch: the others of it meet the outage.
  for (let k = 0; k < kills; k++) faults.set(k * batch + random.below(Math.floor(batch / 4)), KILLS[k % KILLS.length]!);
  return faults;
}

/** Creates `count` Threads, each sent so many times at once, to the pods in turn. */
export async function createThreads(load: Load, from: number, count: number): Promise<void> {
  await inParallel(count, CONNECTIONS, async (n) => {
    const i = from + n;
    const { pods, client } = load;
    const fault = load.faults?.get(i);
    if (fault !== undefined) await pods[i % pods.length]!.strike(() => strike(load, i, fault));
    const request = load.request(i);
    await Promise.all(Array.from({ length: SENDS }, (_, s) => client.call((i + s) % pods.length, request)));
  });
  // Each batch begins with all pods up.
  await Promise.all(load.pods.map((pod) => pod.isUp()));
}

/** Sends the first request, alone, into the fault, and shows that it was what it is called. */
async function strike({ pods, client, database, request: requestOf }: Load, i: number, fault: Fault): Promise<void> {
  const request = requestOf(i);
  const at = i % pods.length;
  const pod = pods[at]!;
  if (fault === 'killed at any time') return pod.kill();
  let lost: Promise<void>;
  if (fault === 'answer lost on its way to the client') lost = pod.loseAnswerToClient(request.key);
  else if (fault === 'killed as the append was sent') lost = pod.loseAnswerOfDatabase(request.key, () => pod.kill());
  else lost = pod.loseAnswerOfDatabase(request.key);
  if (fault === 'killed after COMMIT') lost = lost.then(() => pod.kill());
  const [sent] = await Promise.all([client.send(at, request), fault === 'killed as the append was sent' ? null : lost]);
  // Without the answer of PostgreSQL alone, the process finds out by itself.
  expect([fault, sent.outcome]).toEqual([fault, fault === LOSSES[1] ? 'ok' : 'unknown']);
  if (fault === 'killed as the append was sent') return;
  const { rows } = await database.pool.query('select status from idempotency_keys where key = $1', [request.key]);
  expect([fault, rows]).toEqual([fault, [{ status: 201 }]]);
}

/** Of everything that was sent: one effect a key, one answer a key, and all of it stored (I1, I5). */
export async function expectOneEffectEach(load: Load, count: number): Promise<void> {
  const { client, database, pods } = load;
  // Once more, each to any pod: all are known.
  const again = await inParallel(count, CONNECTIONS, (i) => client.call((i % 7) % pods.length, load.request(i)));
  expect(again.filter(({ replayed }) => !replayed)).toEqual([]);

  const byKey = new Map<string, Sent[]>();
  for (const sent of client.requests) byKey.set(sent.key, [...(byKey.get(sent.key) ?? []), sent]);
  expect(byKey.size).toBe(count);
  const { rows } = await database.pool.query<{ key: string; body: string }>('select key, body from idempotency_keys');
  const stored = new Map(rows.map(({ key, body }) => [key, body]));
  expect(stored.size).toBe(count);
  for (const [key, sent] of byKey) expectOneAnswer(key, sent, 201, stored.get(key));

  const acknowledged = again.map(({ text }, i): Acknowledged => {
    const { thread, run } = JSON.parse(text) as ThreadAnswer;
    return { threadId: thread.id, runId: run!.id, text: messageOf(i) };
  });
  await expectStored(database, acknowledged);
  for (const table of ['streams', 'thread_summaries', 'run_summaries']) {
    const { rows: counted } = await database.pool.query(`select count(*)::integer as rows from ${table}`);
    expect([table, counted]).toEqual([table, [{ rows: count }]]);
  }
  expect(client.longestInProgress()).toBeLessThan(GIVE_UP_MS);
  await expectHealthy(database);
}

export const messageOf = (i: number): string => `create ${i}`;

/**
 * Checks that all answers to a key equal the stored body byte for byte, and that only one is no replay (I5). After a lost
 * connection, or a 503 because PostgreSQL was unavailable, every answer may be a replay: the commit may have happened.
 */
export function expectOneAnswer(key: string, sent: readonly Sent[], status: number, stored: string | undefined): void {
  const ok = sent.filter(({ outcome }) => outcome === 'ok');
  expect([key, ...new Set(ok.map((one) => `${one.status} ${one.text}`))]).toEqual([key, `${status} ${stored}`]);
  const firsts = ok.filter(({ replayed }) => !replayed).length;
  const mayBeLost = sent.some(
    ({ outcome, text }) => outcome === 'unknown' || (outcome === 'away' && text.includes('cannot reach its database')),
  );
  expect([key, firsts]).toEqual([key, mayBeLost ? Math.min(firsts, 1) : 1]);
}

/** Not empty: of the requests that met no fault nearly all were answered; those "in progress" are sent again anyway. */
export function expectMostlyOk({ client, pods, faults, request }: Load, what: string): void {
  const struck = new Set([...(faults?.keys() ?? [])].map((i) => request(i).key));
  const fakeProvider = client.requests.filter((sent) => pods[sent.pod]!.wasUp(sent) && !struck.has(sent.key));
  const count = (list: readonly Sent[], outcome: Sent['outcome']) =>
    list.filter((sent) => sent.outcome === outcome).length;
  const told = (list: readonly Sent[]) => OUTCOMES.map((outcome) => `${count(list, outcome)} ${outcome}`).join(', ');
  const replays = client.requests.filter(({ replayed }) => replayed).length;
  reportFigure(
    `${what}: ${told(client.requests)} (${replays} replayed); outside of faults ${told(fakeProvider)}; ` +
      `longest in progress ${client.longestInProgress()} ms`,
  );
  expect(count(fakeProvider, 'ok')).toBeGreaterThanOrEqual(0.95 * (fakeProvider.length - count(fakeProvider, 'busy')));
  expect(fakeProvider.length).toBeGreaterThan(client.requests.length / 2);
  expect(shareAtOnce(client.requests)).toBeGreaterThan(0.8);
}

/** Of the keys: of how many a second request was sent before the first was answered. */
function shareAtOnce(requests: readonly Sent[]): number {
  const firstAnswer = new Map<string, number>();
  for (const { key, answeredAt } of requests) {
    firstAnswer.set(key, Math.min(firstAnswer.get(key) ?? Infinity, answeredAt));
  }
  const sentBefore = new Map<string, number>();
  for (const { key, sentAt } of requests) {
    if (sentAt <= firstAnswer.get(key)!) sentBefore.set(key, (sentBefore.get(key) ?? 0) + 1);
  }
  return [...sentBefore.values()].filter((count) => count > 1).length / firstAnswer.size;
}
