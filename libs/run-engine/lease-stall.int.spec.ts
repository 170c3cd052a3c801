import type { MessagePort } from 'node:worker_threads';
import { registerWorker } from '#run-queue';
import { createLogger } from '#platform';
import { eventually, isNight } from '#testing';
import type { Claim } from './claim.ts';
import { makeWorld, type World } from './engine.testing.ts';
import { message, ok, scripted, scriptedHarness, tool, useTools } from './scripted-harness.testing.ts';

// Every stall blocks the thread of this spec, which is the main thread of the worker under test.

const LEASE_MS = 2_000;
/** How often one Run stalls. The second stall begins with a lease that was renewed during a stall. */
const STALLS = isNight ? 3 : 2;

let world: World;
beforeAll(async () => {
  world = await makeWorld({ leaseMs: LEASE_MS });
});
afterAll(() => world.close());

const silence = new Int32Array(new SharedArrayBuffer(4));
const stall = (leases: number): void => void Atomics.wait(silence, 0, 0, leases * LEASE_MS);

const claimsOf = async (threadId: string) =>
  (await world.types(threadId)).filter((type) => type === 'run.claimed').length;

const msLeft = async (runId: string): Promise<number> => {
  const { rows } = await world.pool.query<{ left: number }>(
    'select 1000 * extract(epoch from due_at - clock_timestamp())::float as left from run_work where run_id = $1',
    [runId],
  );
  return rows[0]!.left;
};

/** Waits until the lease thread, which starts in parallel, has renewed the lease. */
const isRenewed = (claim: Claim): Promise<unknown> => {
  const { leaseUntil } = claim;
  return eventually(() => claim.leaseUntil > leaseUntil, { what: 'a renewal' });
};

/** Returns a worker whose Run keeps speaking, with at most this much left of its lease. */
async function workLateInLease() {
  const worker = await world.makeWorker();
  worker.leases.start();
  const said = await world.say('a b c /pause 60s');
  const execution = worker.engine.executeJob(said.job);
  const speaks = async () => (await world.types(said.threadId)).includes('assistant.text_added');
  await eventually(speaks, { what: 'the Run speaks' });
  const [claim] = worker.leases.claims();
  await isRenewed(claim!);
  await eventually(async () => (await msLeft(said.runId)) < 0.85 * LEASE_MS, { what: 'it is late in its lease' });
  const end = async () => {
    worker.engine.cutSteps();
    await execution;
    await worker.leases.stop();
  };
  return { ...said, ...worker, execution, claim: claim!, end };
}

describe('a stall of the main thread', () => {
  it('shorter than a lease loses no claim', async () => {
    const { claim, threadId, runId, leases, end } = await workLateInLease();
    for (let i = 0; i < STALLS; i++) {
      stall(0.9);
      leases.look();
      expect(claim.stopReason).toBeNull();
      const left = await msLeft(runId);
      expect(left).toBeGreaterThan(0);
      await isRenewed(claim);
    }
    await end();
    expect(await claimsOf(threadId)).toBe(1);
    expect(await world.types(threadId)).toContain('run.requeued');
  }, 30_000);

  it('longer than a lease stops all work before it continues, even if the lease still holds', async () => {
    let executed = 0;
    const counting = tool('count', async () => ok(String(++executed)));
    const ask = useTools(['count']);
    let claim: Claim | undefined;
    const stalling = scriptedHarness(
      async function* (context) {
        [claim] = leases.claims();
        await isRenewed(claim!);
        stall(1.2);
        yield* ask(context);
      },
      [counting],
    );
    const { engine, leases } = await world.makeWorker({ harnesses: [stalling] });
    leases.start();
    const { job, threadId, runId } = await world.say('x', scripted);
    await engine.executeJob(job);
    expect(claim!.stopReason).toBe('unsure');
    // The fence would not refuse an append.
    expect(await msLeft(runId)).toBeGreaterThan(0);
    await leases.stop();
    expect(executed).toBe(0);
    expect(await world.types(threadId)).not.toContain('assistant.message_added');
    expect((await world.run(threadId, runId))?.attempt).toBe(1);
  }, 30_000);

  it('much longer than a lease ends the lease, and another worker takes over', async () => {
    const { claim, runId, execution, leases } = await workLateInLease();
    stall(2.5);
    leases.look();
    expect(claim.stopReason).toBe('unsure');
    expect(await msLeft(runId)).toBeLessThan(0);
    await execution;
    await world.makeReaper().reap(new AbortController().signal);
    expect(world.jobs).toContainEqual(expect.objectContaining({ runId, dispatch: 2 }));
    await leases.stop();
  }, 30_000);

  it('does not stop the heartbeat of the worker', async () => {
    const { leases, holder } = await world.makeWorker({ leaseMs: 6_000 });
    const registered = await registerWorker(world.pool, { holder, slots: 1 }, createLogger('silent', 'spec'));
    leases.start();
    stall(5_500 / LEASE_MS);
    const { rows } = await world.pool.query<{ age: number }>(
      'select extract(epoch from clock_timestamp() - seen_at)::float as age from workers where holder = $1',
      [holder],
    );
    expect(rows[0]!.age).toBeLessThan(4);
    await registered.close();
    await leases.stop();
  }, 30_000);
});

describe('the lease thread', () => {
  it('is restarted with its claims after a crash', async () => {
    const { claim, renewer, runId, end } = await workLateInLease();
    const { port } = renewer as unknown as { port: MessagePort };
    port.postMessage({ type: 'nonsense' });
    const leaseUntil = claim.leaseUntil;
    await eventually(() => (renewer as unknown as { port: MessagePort }).port !== port, { what: 'another thread' });
    await eventually(() => claim.leaseUntil > leaseUntil + LEASE_MS / 2, { what: 'it renews' });
    expect(await msLeft(runId)).toBeGreaterThan(0);
    expect(claim.stopReason).toBeNull();
    await end();
  }, 30_000);

  it('stops the work in time if it cannot be started', async () => {
    const { engine, leases, renewer } = await world.makeWorker();
    // The thread is never started, as if every start crashed.
    jest.spyOn(renewer, 'start').mockImplementation(() => renewer.beat());
    leases.start();
    const { job, runId } = await world.say('a b c /pause 60s');
    await engine.executeJob(job);
    expect(await msLeft(runId)).toBeGreaterThan(0);
    await leases.stop();
  }, 30_000);

  it('keeps the claim of a harness that stalls in each of its deltas', async () => {
    const stalling = scriptedHarness(async function* () {
      await isRenewed(leases.claims()[0]!);
      for (let i = 0; i < STALLS; i++) {
        stall(0.8);
        yield { type: 'text', text: 'x' };
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
      yield message('xxx');
    });
    const { engine, leases } = await world.makeWorker({ harnesses: [stalling] });
    leases.start();
    const { job, threadId, runId } = await world.say('x', scripted);
    await engine.executeJob(job);
    expect((await world.summary(runId)).status).toBe('completed');
    expect(await claimsOf(threadId)).toBe(1);
    await leases.stop();
  }, 30_000);
});
