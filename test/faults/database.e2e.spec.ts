import { migrateInstallation } from '#run-queue';
import {
  describeWithRedis,
  eventually,
  faultProxy,
  type FaultProxy,
  type PrivatePostgres,
  redisUrl,
  reportFigure,
  reportLatency,
  type SpawnedNode,
  startPrivatePostgres,
} from '#testing';
import { send, type Caller } from '../support/client.ts';
import { FakeProvider, type ModelCall } from '../support/fake-provider.ts';
import { freshSeed, seededRandom } from '../support/random.ts';
import { StandardLoad, type StandardLoadOptions } from '../support/standard-load.ts';
import { isLong, startSystem, upTo, type System } from '../support/system.ts';

const LEASE_MS = isLong ? 10_000 : 2_000;
/** F6: how often PostgreSQL is restarted, and how long from one time to the next. */
const RESTARTS = isLong ? 12 : 2;
const RESTART_EVERY_MS = isLong ? 10_000 : 2_500;
const HEALED_WITHIN_MS = 2_000;
/** F7. */
const STALL_MS = isLong ? 20_000 : LEASE_MS + 1_000;
const CLOSED_WITHIN_MS = 500;
const LOST_ANSWERS = isLong ? 100 : 5;
/** A Thread's messages take about a second each. */
const LOAD: StandardLoadOptions = isLong
  ? { threads: 30, messages: 6, pieces: 40, pauseMs: 100 }
  : { threads: 8, messages: 2, pieces: 30, pauseMs: 30, readers: 3 };

describeWithRedis('PostgreSQL breaks under load', () => {
  let postgres: PrivatePostgres;
  let fakeProvider: FakeProvider;
  let system: System;
  let callers: Caller[];
  /** From the first worker to PostgreSQL; all others have lines of their own. */
  let line: FaultProxy;
  let workers: SpawnedNode[];

  beforeAll(async () => {
    [postgres, fakeProvider] = await Promise.all([startPrivatePostgres(), FakeProvider.start()]);
    await migrateInstallation({ ownerUrl: postgres.ownerUrl, appUrl: postgres.url });
    line = await faultProxy(postgres.port);
    system = await startSystem({
      queueUrl: redisUrl().url,
      testDatabase: { ...postgres, drop: () => postgres.stop() },
      manifest: fakeProvider.manifest,
      env: { ...fakeProvider.env, LEASE_MS: String(LEASE_MS) },
    });
    const apis = Promise.all([system.startApi(), system.startApi()]);
    workers = await Promise.all([
      system.startWorker({ DATABASE_URL: line.through(system.databaseUrl) }),
      system.startWorker(),
    ]);
    callers = (await apis).map(({ caller }) => caller);
    await system.database.pool.query(KEEP_LEASES);
  }, 120_000);

  /** What reads beside a test, for when it ends early. */
  let probe: ReturnType<typeof startProbe> | undefined;

  const loads: StandardLoad[] = [];

  afterAll(async () => {
    await probe?.stop().catch(() => undefined);
    loads.forEach((load) => load.abandon());
    line.resume();
    await system.stop();
    await line.close();
    await fakeProvider.close();
  });

  function startLoad(what: string, more: StandardLoadOptions = {}): StandardLoad {
    const random = seededRandom(freshSeed(), what);
    const parts = { database: system.database, fakeProvider, callers: callers.map((caller) => () => caller), random };
    const load = new StandardLoad(parts, { ...LOAD, ...more });
    loads.push(load);
    return load;
  }

  const ask = async <Row>(text: string, ...values: unknown[]): Promise<Row[]> =>
    (await system.database.pool.query(text, values)).rows as Row[];

  async function waitUntil(at: number): Promise<void> {
    const timeoutMs = Math.max(0, at - performance.now()) + 1_000;
    await eventually(() => performance.now() >= at, { what: 'the fault has lasted for long enough', timeoutMs });
  }

  test(
    'it is killed and back, again and again: 503 at worst, apis recover, and Runs go on (F6)',
    async () => {
      let isBreaking = true;
      const load = startLoad('F6', { messages: isLong ? 30 : 1, keepOn: () => isBreaking });
      await eventually(() => load.ended > 2, { what: 'the load is under way', timeoutMs: 20_000 });
      probe = startProbe(callers, `/threads/${load.said[0]!.threadId}`);
      const healedMs: number[] = [];
      const wentOnMs: number[] = [];
      for (let restart = 0; restart < RESTARTS; restart++) {
        const next = performance.now() + RESTART_EVERY_MS;
        load.faulty();
        await postgres.stopImmediately();
        await postgres.start();
        const readyAt = performance.now();
        const events = await countWorkersEvents();
        const apis = callers.map((_, pod) => probe!.firstOkAfter(pod, readyAt));
        const goneOn = async (): Promise<boolean> => (await countWorkersEvents()) > events;
        const working = eventually(goneOn, { what: 'Runs go on' });
        healedMs.push(...(await Promise.all(apis)).map((at) => at - readyAt));
        await working.then(() => wentOnMs.push(performance.now() - readyAt));
        load.healthy();
        await waitUntil(next);
      }
      isBreaking = false;
      await load.finished(upTo(60_000));
      const answers = await probe.stop();
      reportFigure(
        `F6: ${RESTARTS} restarts; apis answered again after ${told(healedMs)} ms, Runs went on after ${told(wentOnMs)} ms; ` +
          `${answers.ok} probes ok, ${answers.away} answered 503`,
      );
      expect(answers.other).toEqual([]);
      expect(answers.away).toBeGreaterThan(0);
      await load.holds();
      reportLatency(HEALED_WITHIN_MS, healedMs, 'apis answered again after');
      reportLatency(LEASE_MS + 2_000, wentOnMs, 'Runs went on after');
    },
    upTo(120_000),
  );

  const countWorkersEvents = async (): Promise<number> =>
    (await ask<{ count: number }>('select count(*)::integer as count from events where attempt is not null'))[0]!.count;

  test(
    'the answers to a worker’s appends are lost: each is recognised, none is doubled (F7)',
    async () => {
      const load = startLoad('F7, lost answers');
      for (let lost = 0; lost < LOST_ANSWERS; lost++) {
        await line.dropNextAnswer((request) => request.includes('append'));
      }
      expect(load.ended).toBeLessThan(load.threads * load.messages);
      await load.finished(upTo(60_000));
      await load.holds();
      // Not one Run was cut: all was recognised within the lease.
      const runIds = load.said.map(({ runId }) => runId);
      const cuts = await ask(`select from events where run_id = any ($1) and type = 'run.requeued'`, runIds);
      expect(cuts).toHaveLength(0);
    },
    upTo(90_000),
  );

  test(
    'the line of a worker is silent: it stops its work before its leases end, another one goes on (F7)',
    async () => {
      const load = startLoad('F7, stalled', { pieces: 100, messages: isLong ? 6 : 1 });
      const isBusy = (): boolean => openCallsOf(workers[0]!).length >= 2;
      await eventually(isBusy, { what: 'the worker has Runs', timeoutMs: 20_000 });
      load.faulty();
      line.stall();
      const stalledAt = performance.now();
      const cut = openCallsOf(workers[0]!);
      const areClosed = (): boolean => cut.every(({ closedAt }) => closedAt !== null);
      await eventually(areClosed, { what: 'the calls to the provider are closed' });
      const stops = await Promise.all(cut.map(stopOf));
      const spareMs = stops.map((stop) => stop.spareMs);
      reportFigure(`F7, stalled: work stopped ${told(spareMs)} ms before the leases ended`);
      const haveGoneOn = async (): Promise<boolean> => (await Promise.all(cut.map(isClaimedAgain))).every(Boolean);
      await eventually(haveGoneOn, { what: 'another worker has all its Runs' });
      await waitUntil(stalledAt + STALL_MS);
      expect(openCallsOf(workers[0]!)).toEqual([]);
      expect(Math.min(...spareMs)).toBeGreaterThan(0);
      line.resume();
      load.healthy();
      await load.finished(upTo(90_000));
      await load.holds();
      const closingMs = stops.map((stop) => stop.closingMs);
      reportLatency(CLOSED_WITHIN_MS, closingMs, 'the calls to the provider were closed after the stop by');
    },
    upTo(120_000),
  );

  /**
   * Returns how long before the end of its lease the worker stopped a call, and how long after that the call was closed.
   * Milliseconds. Worker, PostgreSQL and this process have the same clock here. A worker that is paused stops in its first turn
   * after the pause, so its last turn before counts.
   */
  async function stopOf({ runId, attempt, pid, closedAt }: ModelCall): Promise<Stop> {
    const find = () => fakeProvider.stops.find((stop) => stop.runId === runId && stop.pid === pid);
    const stop = await eventually(find, { what: 'the worker has reported its stop' });
    const [lease] = await ask<{ endsAt: string }>(
      'select max(due_at) as "endsAt" from lease_history where run_id = $1 and attempt = $2',
      runId,
      attempt,
    );
    return { spareMs: Date.parse(lease!.endsAt) - stop.lastTurnAt, closingMs: closedAt! - stop.stoppedAt };
  }

  async function isClaimedAgain({ runId, attempt }: ModelCall): Promise<boolean> {
    const sql = `select from events where run_id = $1 and type = 'run.claimed' and attempt > $2`;
    return (await ask(sql, runId, attempt)).length > 0;
  }

  (isLong ? test : test.skip)(
    'the connections of a worker are half-open: it finds out, and goes on over new ones (F7)',
    async () => {
      const load = startLoad('F7, half-open');
      const isBusy = (): boolean => openCallsOf(workers[0]!).length >= 2;
      await eventually(isBusy, { what: 'the worker has Runs', timeoutMs: 20_000 });
      load.faulty();
      line.abandon();
      const abandonedAt = Date.now();
      const isBack = (): boolean =>
        fakeProvider.modelCalls.some(
          ({ pid, openedAt }) => pid === workers[0]!.pid && openedAt > abandonedAt + LEASE_MS,
        );
      await eventually(isBack, { what: 'the worker works on', timeoutMs: 2 * LEASE_MS + 10_000 });
      load.healthy();
      await load.finished(upTo(90_000));
      await load.holds();
    },
    upTo(120_000),
  );

  /** The calls to the provider that the worker has open. */
  const openCallsOf = ({ pid }: SpawnedNode): ModelCall[] =>
    fakeProvider.modelCalls.filter((call) => call.pid === pid && call.closedAt === null);
});

/** Records every written lease, because `run_work` no longer has a lost lease when the test looks. */
const KEEP_LEASES = `
  create table lease_history (run_id text, attempt integer, due_at timestamptz);
  grant insert on lease_history to public;
  create function keep_lease() returns trigger language plpgsql as $$ begin
    insert into lease_history values (new.run_id, new.attempt, new.due_at);
    return null;
  end $$;
  create trigger keep_lease after insert or update on run_work
    for each row when (new.state = 'leased') execute function keep_lease()`;

interface Stop {
  spareMs: number;
  closingMs: number;
}

const told = (numbers: number[]): string =>
  `${Math.round(Math.min(...numbers))} to ${Math.round(Math.max(...numbers))}`;

interface Probed {
  ok: number;
  away: number;
  /** What must not be. */
  other: string[];
}

/** Reads from every api over and over. */
function startProbe(callers: readonly Caller[], path: string) {
  const answers: Probed = { ok: 0, away: 0, other: [] };
  const lastOk = callers.map(() => 0);
  let isOver = false;
  const loops = callers.map(async (caller, pod) => {
    for (let i = 0; !isOver; i++) {
      const sentAt = performance.now();
      const { status, headers, body } = await send(caller, 'GET', i % 2 === 0 ? path : `${path}/events`);
      if (status === 200) [answers.ok, lastOk[pod]] = [answers.ok + 1, sentAt];
      else if (status === 503 && headers.has('retry-after')) answers.away++;
      else answers.other.push(`${status} ${JSON.stringify(body)}`);
    }
  });
  return {
    /** When the first call was sent after that moment that was answered. */
    firstOkAfter: (pod: number, at: number): Promise<number> =>
      eventually(() => lastOk[pod]! > at && lastOk[pod]!, { what: 'an api answers again', timeoutMs: 10_000 }),
    stop: async (): Promise<Probed> => {
      isOver = true;
      await Promise.all(loops);
      return answers;
    },
  };
}
