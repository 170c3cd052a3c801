import { ulid } from 'ulid';
import { lookAtLimits } from '#run-queue';
import { eventually } from '#testing';
import { makeWorld, type World } from './engine.testing.ts';
import { gate, ok, scripted, scriptedHarness, tool, useTools } from './scripted-harness.testing.ts';

// One organization may hold half of all slots. The one registered worker has 5 slots, so the cap is 2.

let world: World;
beforeAll(async () => {
  world = await makeWorld({ slotsPercent: 50 });
  await setFleet(5);
});
afterAll(() => world.close());

const setFleet = (slots: number) =>
  world.pool.query(
    `insert into workers (holder, slots, seen_at) values ('fleet', $1, clock_timestamp() + interval '1 hour')
     on conflict (holder) do update set slots = excluded.slots`,
    [slots],
  );

async function makeAgent(maxRuns: number | null) {
  const id = ulid();
  await world.pool.query('insert into organizations (id, name, max_runs) values ($1, $1, $2)', [id, maxRuns]);
  return world.makeAgent(scripted, id);
}

/** Executes Runs of the agent, which wait until `open`. */
async function execute(agent: Awaited<ReturnType<typeof makeAgent>>, count: number) {
  const held = gate();
  const hold = tool('hold', async () => held.pass().then(() => ok('')), { idempotent: true });
  const harnesses = [scriptedHarness(useTools(['hold']), [hold])];
  const { engine } = await world.makeWorker({ harnesses });
  const said = [];
  for (let i = 0; i < count; i++) said.push(await world.sayTo(agent, `${i}`));
  const executions = said.map(({ job }) => engine.executeJob(job));
  const end = async (): Promise<void> => {
    held.open();
    await Promise.all(executions);
  };
  return { said, engine, harnesses, end };
}

async function statesOf({ organizationId }: { organizationId: string }): Promise<Record<string, number>> {
  const { rows } = await world.pool.query<{ state: string; count: number }>(
    'select state, count(*)::integer as count from run_work where organization_id = $1 group by 1 order by 1',
    [organizationId],
  );
  return Object.fromEntries(rows.map(({ state, count }) => [state, count]));
}

const eventuallyHas = (agent: { organizationId: string }, states: Record<string, number>) =>
  eventually(async () => JSON.stringify(await statesOf(agent)) === JSON.stringify(states), {
    what: `its Runs are ${JSON.stringify(states)}`,
  });

it('is the limit of an organization without its own limit, and admits the next Runs when some end', async () => {
  const agent = await makeAgent(null);
  const { said, engine, end } = await execute(agent, 4);
  await eventuallyHas(agent, { leased: 2, limited: 2 });
  const before = world.jobs.length;
  await end();
  const admitted = () => world.jobs.slice(before).filter(({ runId }) => said.some((one) => one.runId === runId));
  await eventually(() => admitted().length === 2, { what: 'two are admitted' });
  for (const job of admitted()) await engine.executeJob(job);
  await eventuallyHas(agent, {});
});

it('does not apply to other organizations, and a smaller or larger own limit replaces it', async () => {
  const agents = [await makeAgent(null), await makeAgent(1), await makeAgent(3)];
  const executed = [];
  for (const agent of agents) executed.push(await execute(agent, 4));
  await eventuallyHas(agents[0]!, { leased: 2, limited: 2 });
  await eventuallyHas(agents[1]!, { leased: 1, limited: 3 });
  await eventuallyHas(agents[2]!, { leased: 3, limited: 1 });
  for (const { end } of executed) await end();
});

it('applies to the claims of this release beside a release without the cap', async () => {
  const agent = await makeAgent(null);
  const { engine, harnesses, end } = await execute(agent, 4);
  await eventuallyHas(agent, { leased: 2, limited: 2 });
  // The dispatcher of the previous release admits all Runs, and its worker claims one.
  const [first, second] = await lookAtLimits(world.pool, null);
  await eventuallyHas(agent, { leased: 2, ready: 2 });
  const before = await world.makeWorker({ harnesses, slotsPerOrganization: async () => null });
  const claimed = before.engine.executeJob(first!);
  await eventuallyHas(agent, { leased: 3, ready: 1 });
  await engine.executeJob(second!);
  await eventuallyHas(agent, { leased: 3, limited: 1 });
  const jobsBefore = world.jobs.length;
  await Promise.all([end(), claimed]);
  const isAdmitted = () => world.jobs.slice(jobsBefore).some(({ runId }) => runId === second!.runId);
  await eventually(isAdmitted, { what: 'the last one is admitted' });
  await engine.executeJob(second!);
  await eventuallyHas(agent, {});
});
