import { describeWithRedis, eventually, redisUrl, reportFigure, reportLatency } from '#testing';
import { readLog } from '../support/client.ts';
import type { ModelCall, Point, ToolName, ToolUse } from '../support/fake-provider.ts';
import { freshSeed, seededRandom, type Random } from '../support/random.ts';
import { startStandardSystem, type StandardSystem } from '../support/standard-system.ts';
import { isLong, upTo } from '../support/system.ts';
import {
  claimsOf,
  expectRecovered,
  killWorker,
  recoveriesOf,
  type LostClaim,
  type Recovery,
} from '../support/worker-kills.ts';

const LEASE_MS = isLong ? 2_000 : 1_500;
const DEFAULT_LEASE_MS = 10_000;
/** After a worker is lost, its Runs go on within the lease and this (F1 of docs/reliability.md#faults). */
const MARGIN_MS = 2_000;
const STOPS_WITHIN_MS = 1_000;
/** One that leads the reaper and falls silent leads on for so long at most (leader-loop.ts): less than the default lease. */
const SILENT_LEADER_MS = 8_000;
const ROUNDS = isLong ? 10 : 1;
/** How many moments share a kill. Their Runs have the same worker. */
const MOMENTS_A_KILL = isLong ? 1 : 3;
const KILLS_A_BATCH = 10;

type Call = ModelCall | ToolUse;
const isTool = (call: Call): call is ToolUse => 'toolName' in call;
const inStep = (step: number) => (call: Call) => !isTool(call) && call.step === step;
const use = (toolName: ToolName) => (call: Call) => isTool(call) && call.toolName === toolName;

interface Moment {
  moment: string;
  point: Point;
  wanted: (call: Call) => boolean;
  /** What the tool that was under way did in all, and what the model was told of it. */
  tool?: { uses: number; effects: number; told: string };
}

type Place = Pick<Moment, 'point' | 'wanted'>;

const MOMENTS: Moment[] = [
  { moment: 'after the claim', point: 'step asked', wanted: inStep(0) },
  {
    moment: 'before a tool',
    point: 'tool asked',
    wanted: use('act'),
    tool: { uses: 1, effects: 0, told: 'unknown' },
  },
  {
    moment: 'after a tool, before its append',
    point: 'tool done',
    wanted: use('act'),
    tool: { uses: 1, effects: 1, told: 'unknown' },
  },
  {
    moment: 'after an idempotent tool, before its append',
    point: 'tool done',
    wanted: use('lookup'),
    tool: { uses: 2, effects: 2, told: 'ok' },
  },
  { moment: 'mid-text', point: 'half said', wanted: inStep(1) },
  { moment: 'before the end of the Run', point: 'all said', wanted: inStep(1) },
];

describeWithRedis('a worker is lost', () => {
  let system: StandardSystem;
  let random: Random;

  const start = async (env: Record<string, string>): Promise<void> => {
    system = await startStandardSystem({ queueUrl: redisUrl().url, env });
  };

  /** Kills the worker that a call like the first comes from, while it has such a call at each other place too. */
  async function killAt(first: Place, ...others: Place[]): Promise<{ calls: Call[]; lost: LostClaim[] }> {
    const { fakeProvider } = system;
    const call = await fakeProvider.hold(first.point, first.wanted).reached;
    const isOfVictim = ({ pid }: Call): boolean => pid === call.pid;
    const more = others.map(({ point, wanted }) => fakeProvider.hold(point, (one) => isOfVictim(one) && wanted(one)));
    const calls = [call, ...(await Promise.all(more.map(({ reached }) => reached)))];
    const lost = await killWorker(system, call.pid);
    return { calls, lost };
  }

  describe('of two', () => {
    beforeAll(() => start({ LEASE_MS: String(LEASE_MS) }), 120_000);
    afterAll(() => system?.stop());

    test(
      'killed at each moment of a Run, it loses nothing, and nothing is done twice (F1)',
      async () => {
        random = seededRandom(freshSeed(), 'F1');
        let isKilling = true;
        const load = system.startLoad(random, { threads: 8, messages: 1, keepOn: () => isKilling });
        const losses: LostClaim[] = [];
        const kills: { moment: Moment; call: Call; lost: LostClaim[] }[] = [];
        for (let round = 0; round < ROUNDS; round++) {
          for (let from = 0; from < MOMENTS.length; from += MOMENTS_A_KILL) {
            const moments = MOMENTS.slice(from, from + MOMENTS_A_KILL) as [Moment, ...Moment[]];
            const { calls, lost } = await killAt(...moments);
            losses.push(...lost);
            kills.push(...moments.map((moment, i) => ({ moment, call: calls[i]!, lost })));
          }
        }
        isKilling = false;
        await load.finished(60_000);
        const recoveries = await recoveriesOf(system, losses);
        for (const { moment, call, lost } of kills) {
          const own = lost.find(({ runId }) => runId === call.runId)!;
          await expectResumed(moment, call, await lossesAfter(own));
        }
        await load.holds();
        expectRecovered(LEASE_MS + MARGIN_MS, recoveries, `F1, lease ${LEASE_MS} ms`);
      },
      upTo(120_000),
    );

    /**
     * The number of later claims of this Run whose lease ended: to a later kill, or because the machine stopped the worker for
     * longer than its lease.
     */
    async function lossesAfter({ runId, attempt }: LostClaim): Promise<number> {
      const find = `select count(*)::integer as count from events
        where run_id = $1 and type = 'run.requeued' and data ->> 'reason' = 'lease_expired' and attempt > $2`;
      const { rows } = await system.database.pool.query<{ count: number }>(find, [runId, attempt]);
      return rows[0]!.count;
    }

    /** Prints why a tool was used more often than its Run was lost. */
    async function printHistory(runId: string, uses: ToolUse[]): Promise<void> {
      const { rows } = await system.database.pool.query(
        'select version, type, attempt, occurred_at, data from events where run_id = $1 order by version',
        [runId],
      );
      process.stderr.write(`F1: uses ${JSON.stringify(uses)}; events ${JSON.stringify(rows)}\n`);
    }

    /** The Run went on exactly where it was; it was lost so often again. */
    async function expectResumed({ moment, tool }: Moment, call: Call, lostAgain: number): Promise<void> {
      const { modelCalls, toolUses } = system.fakeProvider;
      const log = (await readLog(system.apis[0]!.caller, call.threadId)).filter(({ runId }) => runId === call.runId);
      expect([moment, log.map(({ content }) => content)]).toEqual([moment, expect.arrayContaining(['RESCHEDULING'])]);
      if (isTool(call)) {
        const uses = toolUses.filter(({ toolCallId }) => toolCallId === call.toolCallId);
        const effects = uses.filter(({ tookEffect }) => tookEffect).length;
        const next = modelCalls.findLast(({ runId, step }) => runId === call.runId && step === 1);
        const told = next?.told.map(({ toolCallId, outcome }) => [toolCallId, outcome]);
        // Only one that is idempotent is used again.
        const more = tool!.uses > 1 ? Math.min(lostAgain, uses.length - tool!.uses) : 0;
        if (uses.length !== tool!.uses + more) await printHistory(call.runId, uses);
        expect({ moment, uses: uses.length, effects, told }).toEqual({
          moment,
          uses: tool!.uses + more,
          effects: tool!.effects + more,
          told: [[call.toolCallId, tool!.told]],
        });
        return;
      }
      const same = modelCalls.filter(({ runId, step }) => runId === call.runId && step === call.step);
      // One call of each attempt, and of no more attempts than were lost.
      const attempts = same.map(({ attempt }) => attempt);
      expect([moment, attempts]).toEqual([moment, [...new Set(attempts)].toSorted((a, b) => a - b)]);
      const after = same.slice(same.indexOf(call) + 1);
      expect(after.length).toBeGreaterThan(0);
      expect(after.length).toBeLessThanOrEqual(1 + lostAgain);
      // From its start, and with the same behind it.
      expect(after.at(-1)).toMatchObject({ message: call.message, told: call.told });
    }

    test(
      'stopped for three leases, it stops its work when it wakes, and writes nothing more (F2)',
      async () => {
        random = seededRandom(freshSeed(), 'F2');
        let isStopping = true;
        const load = system.startLoad(random, { threads: 8, messages: 1, keepOn: () => isStopping });
        const stops: { closedMs: number; recoveries: Recovery[] }[] = [];
        for (let round = 0; round < ROUNDS; round++) stops.push(await stopAndWake());
        isStopping = false;
        await load.finished(60_000);
        await load.holds();
        for (const { closedMs, recoveries } of stops) {
          expectRecovered(Math.max(LEASE_MS, SILENT_LEADER_MS) + MARGIN_MS, recoveries, 'F2');
          reportLatency(STOPS_WITHIN_MS, closedMs, 'its calls were closed after');
        }
      },
      upTo(60_000),
    );

    async function stopAndWake() {
      const { fakeProvider } = system;
      const victim = system.workers[random.below(2)]!;
      const isOfVictim = (call: Call): boolean => call.pid === victim.pid;
      // One that goes on to say all while its reader sleeps, one of whom nothing more is heard, and a tool.
      const wanted = (call: Call): boolean => isOfVictim(call) && inStep(1)(call);
      const [speaks, silent] = [fakeProvider.hold('half said', wanted), fakeProvider.hold('half said', wanted)];
      const tool = fakeProvider.hold('tool asked', (call) => isOfVictim(call) && isTool(call));
      const calls = await Promise.all([speaks.reached, silent.reached, tool.reached]);
      const stoppedAt = Date.now();
      victim.signal('SIGSTOP');
      const lost = await claimsOf(system, victim.pid, stoppedAt);
      expect(lost.map(({ runId }) => runId)).toEqual(expect.arrayContaining(calls.map(({ runId }) => runId)));
      const isOver = (): boolean => Date.now() > stoppedAt + 3 * LEASE_MS;
      await eventually(isOver, { what: 'three leases have passed', timeoutMs: 4 * LEASE_MS });
      speaks.release();
      expect([calls[1].closedAt, calls[2].closedAt]).toEqual([null, null]);

      const wokeAt = Date.now();
      victim.signal('SIGCONT');
      const areClosed = (): boolean => calls.every(({ closedAt }) => closedAt !== null);
      await eventually(areClosed, { what: 'its calls are closed' });
      const closedMs = Math.max(...calls.map((call) => call.closedAt! - wokeAt));
      reportFigure(`F2: its calls were closed ${closedMs} ms after it woke`);
      const recoveries = await recoveriesOf(system, lost);
      // It is the same process, and takes Runs again.
      const next = fakeProvider.hold('step asked', isOfVictim);
      await next.reached;
      next.release();
      return { closedMs, recoveries };
    }
  });

  describe('again and again', () => {
    afterEach(() => system?.stop());

    const campaigns = [
      { name: '100 times', leaseMs: 2_000, kills: 100, env: { LEASE_MS: '2000' } },
      { name: '10 times with the default lease', leaseMs: DEFAULT_LEASE_MS, kills: 10, env: {} },
    ];

    (isLong ? test : test.skip).each(campaigns)(
      'killed $name under the standard load, its Runs go on in time',
      async ({ name, leaseMs, kills, env }) => {
        await start(env);
        random = seededRandom(freshSeed(), `killed ${name}`);
        const recoveries: Recovery[] = [];
        for (let killed = 0; killed < kills;) {
          const until = killed + KILLS_A_BATCH;
          const load = system.startLoad(random, { threads: 20, pauseMs: 50, keepOn: () => killed < until });
          for (; killed < until; killed++) {
            const { lost } = await killAt({ ...random.pick(MOMENTS), wanted: () => true });
            recoveries.push(...(await recoveriesOf(system, lost)));
          }
          await load.finished(120_000);
          await load.holds();
          expectRecovered(leaseMs + MARGIN_MS, recoveries, `${killed} kills, lease ${leaseMs} ms`);
        }
      },
      upTo(0),
    );
  });
});
