import { setTimeout as sleep } from 'node:timers/promises';
import { ulid } from 'ulid';
import { verify } from '#projections';
import { lookAtLimits } from '#run-queue';
import { eventually, faultProxy } from '#testing';
import { makeWorld, type World } from './engine.testing.ts';
import { gate, message, ok, scripted, scriptedHarness, tool, useTools } from './scripted-harness.testing.ts';

let world: World;
beforeAll(async () => {
  world = await makeWorld();
});
afterAll(() => world.close());

/** An organization, and the work items of its Runs. */
async function makeOrganization(maxRuns: number | null = null) {
  const id = ulid();
  await world.pool.query('insert into organizations (id, name, max_runs) values ($1, $2, $3)', [
    id,
    'Limited',
    maxRuns,
  ]);
  return id;
}

const setLimit = (organizationId: string, maxRuns: number | null) =>
  world.pool.query('update organizations set max_runs = $2 where id = $1', [organizationId, maxRuns]);

const workOf = async (runId: string) => {
  const { rows } = await world.pool.query<{ state: string; limitedBy: string | null; msLeft: number | null }>(
    `select state, limited_by as "limitedBy", extract(epoch from due_at - clock_timestamp())::float8 * 1000 as "msLeft"
     from run_work where run_id = $1`,
    [runId],
  );
  return rows[0];
};

const claimedCount = async (organizationId: string) => {
  const { rows } = await world.pool.query<{ count: number }>(
    `select count(*)::integer as count from run_work where organization_id = $1 and state = 'leased'`,
    [organizationId],
  );
  return rows[0]!.count;
};

/** Makes a worker whose Runs wait in a tool until the test opens the gate. */
async function makeHoldingWorker() {
  const held = gate();
  const hold = tool('hold', async () => held.pass().then(() => ok('')), { idempotent: true });
  const { engine } = await world.makeWorker({ harnesses: [scriptedHarness(useTools(['hold']), [hold])] });
  return { engine, held };
}

/** Executes one Run, and resolves when the Run is claimed. `end` ends it. */
async function begin(said: { job: Parameters<Awaited<ReturnType<World['makeWorker']>>['engine']['executeJob']>[0] }) {
  const { engine, held } = await makeHoldingWorker();
  const execution = engine.executeJob(said.job);
  await held.reached;
  return {
    end: async () => {
      held.open();
      await execution;
    },
  };
}

/** Waits until the Run is admitted and enqueued again. */
const isEnqueuedAgain = (runId: string, before: number) =>
  eventually(() => world.jobs.slice(before).some((job) => job.runId === runId), { what: `${runId} is admitted` });

const twoAtOnce = { ...scripted, concurrency: { runs: 2 } };
const oneAtOnce = { ...scripted, concurrency: { runs: 1 } };

describe('the concurrency limit of an agent', () => {
  it('makes a surplus Run wait without using queue time, and admits it when another Run ends', async () => {
    const agent = await world.makeAgent(twoAtOnce, await makeOrganization());
    const [first, second, third] = [
      await world.sayTo(agent, '1'),
      await world.sayTo(agent, '2'),
      await world.sayTo(agent, '3'),
    ];
    const [one, two] = [await begin(first), await begin(second)];
    const { engine } = await makeHoldingWorker();
    await engine.executeJob(third.job);
    expect(await workOf(third.runId)).toEqual({ state: 'limited', limitedBy: 'agent', msLeft: null });
    expect((await world.run(third.threadId, third.runId))?.status).toBe('queued');
    expect((await verify(world.pool)).findings).toEqual([]);

    const before = world.jobs.length;
    await one.end();
    await isEnqueuedAgain(third.runId, before);
    const admitted = await workOf(third.runId);
    expect(admitted).toMatchObject({ state: 'ready', limitedBy: 'agent' });
    expect(admitted?.msLeft).toBeGreaterThan(9 * 60_000);
    const three = await begin(third);
    expect(await workOf(third.runId)).toMatchObject({ state: 'leased', limitedBy: null });
    await two.end();
    await three.end();
    expect((await world.summary(third.runId)).status).toBe('completed');
  });

  it('is never exceeded by many workers that claim at the same time, and all Runs end', async () => {
    const organizationId = await makeOrganization();
    const agent = await world.makeAgent({ ...scripted, concurrency: { runs: 3 } }, organizationId);
    let [now, most, done] = [0, 0, 0];
    const count = tool('count', async () => {
      most = Math.max(most, ++now);
      // The first two wait for a third, even on a slow machine.
      await eventually(() => most >= 3, { what: 'three are under way' });
      await sleep(20);
      now--;
      return ok('');
    });
    const harness = scriptedHarness(useTools(['count']), [count]);
    const workers = await Promise.all([1, 2, 3].map(() => world.makeWorker({ harnesses: [harness] })));
    const from = world.jobs.length;
    const runIds = new Set<string>();
    for (let i = 0; i < 30; i++) runIds.add((await world.sayTo(agent, `${i}`)).runId);
    let next = from;
    const executing = new Set<Promise<void>>();
    const isDone = async (): Promise<boolean> => {
      for (const job of world.jobs.slice(next)) {
        if (!runIds.has(job.runId)) continue;
        const execution = workers[executing.size % workers.length]!.engine.executeJob(job);
        executing.add(execution.then(() => void done++));
      }
      next = world.jobs.length;
      const { rows } = await world.pool.query(
        `select from run_summaries where run_id = any ($1) and status = 'completed'`,
        [[...runIds]],
      );
      return rows.length === runIds.size;
    };
    await eventually(isDone, { what: 'all Runs are completed', timeoutMs: 30_000 });
    await Promise.all(executing);
    expect(most).toBe(3);
    expect(done).toBeGreaterThan(runIds.size);
    expect(await claimedCount(organizationId)).toBe(0);
  });

  it('allows as many of the simultaneous claims as its value', async () => {
    const organizationId = await makeOrganization();
    const agent = await world.makeAgent({ ...scripted, concurrency: { runs: 2 } }, organizationId);
    const workers = await Promise.all(Array.from({ length: 6 }, makeHoldingWorker));
    for (let round = 0; round < 5; round++) {
      const said: Awaited<ReturnType<World['sayTo']>>[] = [];
      for (const _ of workers) said.push(await world.sayTo(agent, `round ${round}`));
      const executing = workers.map(({ engine }, i) => engine.executeJob(said[i]!.job));
      const settled = async (): Promise<boolean> => {
        const states = await Promise.all(said.map(({ runId }) => workOf(runId)));
        return states.every((work) => work?.state === 'leased' || work?.limitedBy === 'agent');
      };
      await eventually(settled, { what: 'each has tried' });
      expect(await claimedCount(organizationId)).toBe(2);
      for (const { threadId } of said) await world.handle(threadId, { type: 'terminate_thread' });
      for (const { engine } of workers) for (const { threadId } of said) engine.wake(threadId, Infinity);
      await Promise.all(executing);
    }
    for (const { held } of workers) held.open();
  });

  it('admits Runs in their order: a new Run waits behind earlier ones', async () => {
    const agent = await world.makeAgent(oneAtOnce, await makeOrganization());
    const first = await world.sayTo(agent, '1');
    const one = await begin(first);
    const [second, third] = [await world.sayTo(agent, '2'), await world.sayTo(agent, '3')];
    const { engine } = await makeHoldingWorker();
    await engine.executeJob(second.job);
    await one.end();
    await eventually(async () => (await workOf(second.runId))?.state === 'ready', { what: 'the second is admitted' });
    // No Run is claimed and none waits, but a place is reserved.
    await engine.executeJob(third.job);
    expect(await workOf(third.runId)).toMatchObject({ state: 'limited' });
    const two = await begin(second);
    await two.end();
    expect((await world.summary(second.runId)).status).toBe('completed');
  });

  it('does not count Runs that wait for a person', async () => {
    const agent = await world.makeAgent({ concurrency: { runs: 1 } }, await makeOrganization());
    const { engine } = await world.makeWorker();
    const asks = await world.sayTo(agent, '/confirm');
    await engine.executeJob(asks.job);
    expect(await workOf(asks.runId)).toMatchObject({ state: 'waiting' });
    const other = await world.sayTo(agent, 'hello');
    await engine.executeJob(other.job);
    expect((await world.summary(other.runId)).status).toBe('completed');
  });

  it('has room again with the commit of an interrupt, before the worker stops', async () => {
    const agent = await world.makeAgent(oneAtOnce, await makeOrganization());
    const [first, second] = [await world.sayTo(agent, '1'), await world.sayTo(agent, '2')];
    const one = await begin(first);
    const { engine } = await makeHoldingWorker();
    await engine.executeJob(second.job);
    expect(await workOf(second.runId)).toMatchObject({ state: 'limited' });
    const before = world.jobs.length;
    await world.handle(first.threadId, { type: 'interrupt', runId: null, by: null });
    await isEnqueuedAgain(second.runId, before);
    await one.end();
  });

  it('admits all waiting Runs when it is removed, even if no Run ends', async () => {
    const organizationId = await makeOrganization(1);
    const agent = await world.makeAgent(scripted, organizationId);
    const said = [await world.sayTo(agent, '1'), await world.sayTo(agent, '2'), await world.sayTo(agent, '3')];
    const one = await begin(said[0]!);
    const { engine } = await makeHoldingWorker();
    for (const { job } of said.slice(1)) await engine.executeJob(job);
    const admitted = async () => (await lookAtLimits(world.pool, null)).map(({ runId }) => runId);
    expect(await admitted()).toEqual([]);
    // A look that began when the two became limited would admit them first.
    await world.limitsAreQuiet();
    await setLimit(organizationId, null);
    expect((await admitted()).toSorted()).toEqual(
      said
        .slice(1)
        .map(({ runId }) => runId)
        .toSorted(),
    );
    await one.end();
  });
});

describe('the concurrency limit of an organization', () => {
  it('applies to all its agents together, and an agent at its own limit does not block the others', async () => {
    const organizationId = await makeOrganization(2);
    const [small, large] = [
      await world.makeAgent(oneAtOnce, organizationId),
      await world.makeAgent(scripted, organizationId),
    ];
    const [a, b] = [await world.sayTo(small, 'a'), await world.sayTo(small, 'b')];
    const [c, d] = [await world.sayTo(large, 'c'), await world.sayTo(large, 'd')];
    const holding = [await begin(a)];
    const { engine } = await makeHoldingWorker();
    await engine.executeJob(b.job);
    expect(await workOf(b.runId)).toMatchObject({ state: 'limited', limitedBy: 'agent' });
    holding.push(await begin(c));
    await engine.executeJob(d.job);
    expect(await workOf(d.runId)).toMatchObject({ state: 'limited', limitedBy: 'organization' });
    expect(await claimedCount(organizationId)).toBe(2);

    const before = world.jobs.length;
    await holding.pop()!.end();
    await isEnqueuedAgain(d.runId, before);
    expect(await workOf(b.runId)).toMatchObject({ state: 'limited' });
    holding.push(await begin(d));
    for (const { end } of holding) await end();
  });

  it.each(['organization', 'agent'] as const)(
    'makes ready Runs wait behind earlier ones that wait for the limit of the %s, without enqueueing them',
    async (whose) => {
      const organizationId = await makeOrganization(whose === 'organization' ? 1 : null);
      const agent = await world.makeAgent(whose === 'agent' ? oneAtOnce : scripted, organizationId);
      const [first, second, third] = [
        await world.sayTo(agent, '1'),
        await world.sayTo(agent, '2'),
        await world.sayTo(agent, '3'),
      ];
      const beside = await world.sayTo(await world.makeAgent(scripted, organizationId), 'beside');
      const elsewhere = await world.sayTo(await world.makeAgent(scripted, await makeOrganization()), 'x');
      const one = await begin(first);
      const { engine } = await makeHoldingWorker();
      await engine.executeJob(second.job);
      await lookAtLimits(world.pool, null);
      expect(await workOf(third.runId)).toEqual({ state: 'limited', limitedBy: whose, msLeft: null });
      expect((await workOf(beside.runId))?.state).toBe(whose === 'agent' ? 'ready' : 'limited');
      expect(await workOf(elsewhere.runId)).toMatchObject({ state: 'ready', limitedBy: null });
      const before = world.jobs.length;
      await one.end();
      await isEnqueuedAgain(second.runId, before);
      expect(await workOf(third.runId)).toMatchObject({ state: 'limited' });
    },
  );
});

describe('a Run that waits for a limit', () => {
  it('is not claimed through its old job', async () => {
    const agent = await world.makeAgent(twoAtOnce, await makeOrganization());
    const said: Awaited<ReturnType<World['sayTo']>>[] = [];
    for (let i = 0; i < 4; i++) said.push(await world.sayTo(agent, `${i}`));
    const [one, two] = [await begin(said[0]!), await begin(said[1]!)];
    const { engine } = await makeHoldingWorker();
    await engine.executeJob(said[2]!.job);
    await engine.executeJob(said[3]!.job);
    await one.end();
    await eventually(async () => (await workOf(said[2]!.runId))?.state === 'ready', { what: 'the first is admitted' });
    // One is claimed and one has a place. The fourth waits, and its job is delivered again.
    await engine.executeJob(said[3]!.job);
    expect(await workOf(said[3]!.runId)).toMatchObject({ state: 'limited' });
    await two.end();
  });

  it('goes before Runs that were never claimed, if its worker has handed it over', async () => {
    const agent = await world.makeAgent(oneAtOnce, await makeOrganization());
    const [first, second] = [await world.sayTo(agent, '1'), await world.sayTo(agent, '2')];
    const { engine, held } = await makeHoldingWorker();
    const execution = engine.executeJob(first.job);
    await held.reached;
    const other = await makeHoldingWorker();
    await other.engine.executeJob(second.job);
    engine.cutSteps();
    await execution;
    const again = await begin({ job: { ...first.job, dispatch: 2 } });
    expect(await workOf(first.runId)).toMatchObject({ state: 'leased' });
    await other.engine.executeJob(second.job);
    expect(await workOf(second.runId)).toMatchObject({ state: 'limited' });
    await again.end();
  });

  it('waits, and its worker continues, even if the response to the claim is lost', async () => {
    const agent = await world.makeAgent(oneAtOnce, await makeOrganization());
    const [first, second] = [await world.sayTo(agent, '1'), await world.sayTo(agent, '2')];
    const one = await begin(first);
    const proxy = await faultProxy(Number(new URL(world.url).port || 5432));
    try {
      const { engine } = await world.makeWorker({ url: proxy.through(world.url) });
      const lost = proxy.dropNextAnswer((request) => request.includes('commit'));
      // Throws if the refusal is mistaken for an outage of the database.
      await engine.executeJob(second.job);
      await lost;
    } finally {
      await proxy.close();
    }
    expect(await workOf(second.runId)).toMatchObject({ state: 'limited' });
    await one.end();
  });

  it('keeps the queue time that passed during an outage of the queue', async () => {
    const agent = await world.makeAgent(oneAtOnce, await makeOrganization());
    const [first, second] = [await world.sayTo(agent, '1'), await world.sayTo(agent, '2')];
    const one = await begin(first);
    // The Run was ready for a minute before an outage of 15 minutes. Its limit is 10 minutes.
    await world.pool.query(
      `update run_work set since = since - interval '16 minutes', due_at = due_at - interval '16 minutes' where run_id = $1`,
      [second.runId],
    );
    await world.pool.query(
      `insert into queue_controls values ('specs (away)', clock_timestamp() - interval '15 minutes')`,
    );
    const { engine } = await makeHoldingWorker();
    await engine.executeJob(second.job);
    await world.pool.query(`delete from queue_controls where queue = 'specs (away)'`);
    await one.end();
    await eventually(async () => (await workOf(second.runId))?.state === 'ready', { what: 'it is admitted' });
    const minutesLeft = ((await workOf(second.runId))?.msLeft ?? 0) / 60_000;
    expect(minutesLeft).toBeGreaterThan(8.5);
    expect(minutesLeft).toBeLessThan(9.1);
  });
});

it('adds no statement to the claim of an agent without limits', async () => {
  const { engine, store } = await world.makeWorker({
    harnesses: [
      scriptedHarness(async function* () {
        yield message('hi');
      }),
    ],
  });
  const append = jest.spyOn(store, 'append');
  const said = await world.say('1', scripted);
  await engine.executeJob(said.job);
  expect(append.mock.calls.map(([{ hook }]) => hook)).toEqual([undefined, undefined]);
});
