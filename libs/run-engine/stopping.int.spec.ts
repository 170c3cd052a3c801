import { setImmediate as nextTurn } from 'node:timers/promises';
import { CommandHandler } from '#event-store';
import { FileStore } from '#files';
import { createLogger } from '#platform';
import { eventually, faultProxy, type FaultProxy } from '#testing';
import { Claim } from './claim.ts';
import { makeWorld, type World } from './engine.testing.ts';
import { LeaseRenewals } from './lease-renewals-worker.mjs';
import { LEASE_STATEMENTS } from './lease-thread.ts';
import { expectInvariants } from './oracle.testing.ts';
import { gate, message, ok, scripted, scriptedHarness, tool, useTools } from './scripted-harness.testing.ts';

let world: World;
beforeAll(async () => {
  world = await makeWorld();
});
afterAll(() => world.close());

const proxies: FaultProxy[] = [];
afterEach(async () => {
  for (const proxy of proxies.splice(0)) await proxy.close();
});

/** Makes a worker whose connection to the database can be cut. */
async function makeFarWorker(options = {}) {
  const proxy = await faultProxy(Number(new URL(world.url).port || 5432));
  proxies.push(proxy);
  return { proxy, worker: await world.makeWorker({ ...options, url: proxy.through(world.url) }) };
}

const AGES = '60s';
const HOUR_MS = 3_600_000;
const newRunId = '01BX5ZZKBKACTAV9WEVGEMMVRZ';

/** Starts a long Run, and waits for its first text. */
async function startSpeaking(
  text = `a b c /pause ${AGES}`,
  manifest = {},
  worker?: Awaited<ReturnType<World['makeWorker']>>,
) {
  const { engine, leases } = worker ?? (await world.makeWorker());
  const said = await world.say(text, manifest);
  const execution = engine.executeJob(said.job);
  const types = () => world.types(said.threadId);
  await eventually(async () => (await types()).includes('assistant.text_added'), { what: 'the Run has written text' });
  return { ...said, engine, leases, execution, types };
}

describe('an interrupt', () => {
  it('stops the work when its wake-up arrives, and no event follows it', async () => {
    const { engine, threadId, runId, execution } = await startSpeaking();
    await world.handle(threadId, { type: 'interrupt', runId: null, by: null });
    const events = await world.stream(threadId);
    engine.wake(threadId, events.length);
    await execution;
    expect(await world.stream(threadId)).toEqual(events);
    expect((await world.summary(runId)).status).toBe('cancelled');
  });

  it('stops the work at the next delta if no wake-up comes', async () => {
    const { threadId, execution } = await startSpeaking('/pieces 10000 /pause 10');
    await world.handle(threadId, { type: 'interrupt', runId: null, by: null });
    await execution;
    const events = await world.stream(threadId);
    expectInvariants(events);
    expect(events.at(-2)?.type).toBe('run.cancelled');
  });

  it('stops the work at the next check of the claims if no wake-up comes and nothing is written', async () => {
    const worker = await world.makeWorker({ leaseMs: HOUR_MS });
    const { threadId, execution } = await startSpeaking(undefined, {}, worker);
    const [claim] = worker.leases.claims();
    const { leaseUntil } = claim!;
    worker.leases.start();
    // The next renewal is in 20 minutes, so only a check can find the interrupt.
    await eventually(() => claim!.leaseUntil > leaseUntil, { what: 'the lease is renewed' });
    await world.handle(threadId, { type: 'interrupt', runId: null, by: null });
    await eventually(() => claim!.signal.aborted, { what: 'the work is stopped' });
    await execution;
    expect((await world.types(threadId)).at(-2)).toBe('run.cancelled');
  });

  it('is not reported while the claims hold', async () => {
    const worker = await world.makeWorker();
    worker.leases.start();
    const { runId, execution } = await startSpeaking('a b c /pause 700', {}, worker);
    await execution;
    expect((await world.summary(runId)).status).toBe('completed');
  });

  it('does not wait for a tool or a model that ignores the signal', async () => {
    const never = gate();
    const deaf = tool('deaf', async () => never.pass().then(() => ok('')));
    const { engine } = await world.makeWorker({ harnesses: [scriptedHarness(useTools(['deaf']), [deaf])] });
    const { job, threadId } = await world.say('x', scripted);
    const execution = engine.executeJob(job);
    await never.reached;
    await world.handle(threadId, { type: 'interrupt', runId: null, by: null });
    engine.wake(threadId, Infinity);
    await execution;
    never.open();
    expect((await world.types(threadId)).at(-2)).toBe('run.cancelled');
  });

  it('by a new message starts the new Run as soon as the work has stopped', async () => {
    const { engine, threadId, message: next, execution } = await startSpeaking();
    await world.handle(threadId, next('stop, do this', newRunId, 'interrupt'));
    const job = { threadId, runId: newRunId, dispatch: 1 };
    const stateOf = async () => {
      const { rows } = await world.pool.query<{ state: string }>('select state from run_work where run_id = $1', [
        newRunId,
      ]);
      return rows[0]?.state;
    };
    expect(await stateOf()).toBe('delayed');
    expect(world.jobs).not.toContainEqual(job);
    engine.wake(threadId, Infinity);
    await execution;
    expect(await stateOf()).toBe('ready');
    expect(world.jobs).toContainEqual(job);
    await engine.executeJob(job);
    expect((await world.summary(newRunId)).final_output?.text).toBe('You said: stop, do this');
  });

  it('causes no extra reads after the Run’s own appends', async () => {
    const { engine, store } = await world.makeWorker();
    const load = jest.spyOn(store, 'load');
    const loadToClaim = jest.spyOn(store, 'loadWithTranscript');
    const { job, threadId } = await world.say('a b c /pause 60');
    await engine.executeJob(job);
    expect((await world.types(threadId)).filter((type) => type === 'assistant.text_added').length).toBeGreaterThan(1);
    expect(loadToClaim).toHaveBeenCalledTimes(1);
    expect(load).not.toHaveBeenCalled();
  });

  it('is noticed during another check', async () => {
    const worker = await world.makeWorker();
    const { engine, store } = worker;
    const { threadId, execution } = await startSpeaking(undefined, {}, worker);
    const looking = gate();
    const load = store.load.bind(store);
    jest.spyOn(store, 'load').mockImplementationOnce(async (...args) => {
      const thread = await load(...args);
      await looking.pass();
      return thread;
    });
    engine.wake(threadId, 1_000);
    await looking.reached;
    await world.handle(threadId, { type: 'interrupt', runId: null, by: null });
    engine.wake(threadId, 1_001);
    looking.open();
    await execution;
    expect((await world.types(threadId)).at(-2)).toBe('run.cancelled');
  });

  it('is not mistaken for other writes to the Thread', async () => {
    const { engine, threadId, runId, execution } = await startSpeaking('a b c /pause 30');
    await world.handle(threadId, { type: 'attach_file', fileId: newRunId });
    engine.wake(threadId, Infinity);
    await execution;
    expect((await world.summary(runId)).status).toBe('completed');
  });
});

describe('the work limit', () => {
  it('expires the Run, and stops the work on it', async () => {
    const { runId, threadId, engine, execution } = await startSpeaking(undefined, { limits: { workMs: 50 } });
    const reap = () => world.makeReaper().reap(new AbortController().signal);
    const isExpired = async () => (await reap(), (await world.summary(runId)).status === 'expired');
    await eventually(isExpired, { what: 'the Run is expired' });
    engine.wake(threadId, Infinity);
    await execution;
    const log = await world.log(threadId);
    expect(log.at(-2)).toMatchObject({ type: 'run.failed', content: 'expired', status: 'error' });
  });

  it('counts the time of all claims, without the time between them', async () => {
    const { threadId, runId } = await world.say('a');
    const claim = (dispatch: number) =>
      world.handle(threadId, { type: 'claim_run', runId, dispatch, holder: 'a worker' });
    const change = (what: string) => world.pool.query(`update run_work set ${what} where run_id = $1`, [runId]);
    const minutesLeft = async () => {
      const { rows } = await world.pool.query<{ minutes: number }>(
        `select round(extract(epoch from work_until - clock_timestamp()) / 60)::integer as minutes
         from run_work where run_id = $1`,
        [runId],
      );
      return rows[0]?.minutes;
    };
    await claim(1);
    expect(await minutesLeft()).toBe(60);
    // For the database, the claim was 50 minutes ago.
    await change(`work_until = work_until - interval '50 minutes'`);
    await world.handle(threadId, { type: 'hand_over_run', runId, attempt: 1 });
    expect(await minutesLeft()).toBeNull();
    await claim(2);
    expect(await minutesLeft()).toBe(10);
  });
});

describe('shutdown', () => {
  it('first lets the step end, stores it, and hands the Run over', async () => {
    const step = gate();
    const slow = tool('slow', async () => step.pass().then(() => ok('slow but done')));
    const harness = scriptedHarness(useTools(['slow']), [slow]);
    const { engine } = await world.makeWorker({ harnesses: [harness] });
    const { job, threadId, runId } = await world.say('x', scripted);
    const execution = engine.executeJob(job);
    await step.reached;
    engine.drain();
    step.open();
    await execution;
    expect(world.commits.at(-1)).toBe('tool.completed run.requeued thread.status_entered');
    expect(world.jobs.at(-1)).toEqual({ threadId, runId, dispatch: 2 });
    expect(await world.run(threadId, runId)).toMatchObject({ status: 'queued', losses: 0, delayMs: 0 });

    const next = await world.makeWorker({ harnesses: [harness] });
    await next.engine.executeJob({ threadId, runId, dispatch: 2 });
    expect((await world.summary(runId)).final_output?.text).toBe('done');
    expectInvariants(await world.stream(threadId));
  });

  it('then cuts the step off and hands the Run over', async () => {
    const { engine, threadId, runId, execution } = await startSpeaking();
    engine.drain();
    engine.cutSteps();
    await execution;
    expect(await world.run(threadId, runId)).toMatchObject({ status: 'queued', dispatch: 2, losses: 0 });
  });

  it('takes no further job, and lets a final step complete its Run', async () => {
    const step = gate();
    const harness = scriptedHarness(async function* () {
      await step.pass();
      yield message('just in time');
    });
    const { engine } = await world.makeWorker({ harnesses: [harness] });
    const { job, runId } = await world.say('x', scripted);
    const execution = engine.executeJob(job);
    await step.reached;
    engine.drain();
    const other = await world.say('too late');
    await engine.executeJob(other.job);
    expect((await world.run(other.threadId, other.runId))?.status).toBe('queued');
    step.open();
    await execution;
    expect((await world.summary(runId)).status).toBe('completed');
  });
});

describe('the lease', () => {
  it('is renewed as long as the work continues', async () => {
    const step = gate();
    const slow = tool('slow', async () => step.pass().then(() => ok('done')));
    const harnesses = [scriptedHarness(useTools(['slow']), [slow])];
    const { engine, holder } = await world.makeWorker({ leaseMs: HOUR_MS, harnesses });
    const { job, threadId, runId } = await world.say('x', scripted);
    const execution = engine.executeJob(job);
    await step.reached;
    // The test moves the clock of the renewals and that of the lease, so that no pause of the machine can end the lease.
    let now = 0;
    const [clock, sent]: [() => number, Promise<unknown>[]] = [() => now, []];
    const query: ConstructorParameters<typeof LeaseRenewals>[0]['query'] = (statement) => {
      const answer = world.pool.query<{ runId: string; attempt: number }>(statement);
      sent.push(answer);
      return answer;
    };
    const about = { holder, leaseMs: HOUR_MS, statements: LEASE_STATEMENTS, query };
    const renewals = new LeaseRenewals({ ...about, now: clock, beatAt: clock, report: () => undefined });
    renewals.hold({ runId, attempt: 1, leaseUntil: HOUR_MS });
    const reaper = world.makeReaper();
    // Two leases and a half.
    for (let tick = 0; tick < 100; tick++) {
      now += HOUR_MS / 40;
      await world.pool.query(`update run_work set due_at = due_at - interval '90 s' where run_id = $1`, [runId]);
      renewals.tick();
      await Promise.allSettled(sent.splice(0));
      await reaper.reap(new AbortController().signal);
    }
    step.open();
    await execution;
    expect((await world.types(threadId)).filter((type) => type === 'run.claimed')).toHaveLength(1);
    expect((await world.summary(runId)).status).toBe('completed');
  });

  it('lost in the database stops the work at the next renewal', async () => {
    const { threadId, runId, execution, leases } = await startSpeaking();
    await world.endLease(runId);
    leases.start();
    await execution;
    expect((await world.types(threadId)).at(-1)).toBe('assistant.text_added');
    expect((await world.run(threadId, runId))?.status).toBe('running');
  });

  it('that cannot be renewed stops the work before it ends', async () => {
    const { proxy, worker } = await makeFarWorker({ leaseMs: 1_200 });
    worker.leases.start();
    const { runId, execution } = await startSpeaking(`a b c /pause ${AGES}`, {}, worker);
    const [claim] = worker.leases.claims();
    proxy.stall();
    for (let left = Infinity; !claim!.signal.aborted; left = await secondsLeft(runId)) {
      // A process that was paused when its lease ended stops in its next turn. The timers of that turn precede the second one.
      if (left <= 0) await nextTurn().then(() => nextTurn());
      expect(left > 0 || claim!.signal.aborted).toBe(true);
    }
    expect(claim!.stopReason).toBe('unsure');
    await execution;
    proxy.resume();
    await worker.leases.stop();
  });

  async function secondsLeft(runId: string): Promise<number> {
    const { rows } = await world.pool.query<{ left: number }>(
      'select extract(epoch from due_at - clock_timestamp())::float as left from run_work where run_id = $1',
      [runId],
    );
    return rows[0]!.left;
  }

  it('that ended before the response to its claim begins no work', async () => {
    const { leases, store } = await world.makeWorker();
    const said = await world.say('hi');
    const thread = (await store.load(said.threadId))!;
    const handler = new CommandHandler({ store, leaseMs: 1_000 });
    const files = new FileStore(world.pool);
    const parts = { handler, store, files, leases, logger: createLogger('silent', 'stopping spec') };
    const claim = new Claim(parts, { job: said.job, attempt: 1, thread, leaseUntil: 0 });
    leases.hold(claim);
    expect(claim.stopReason).toBe('unsure');
    expect(claim.signal.aborted).toBe(true);
  });

  it('of many Runs is renewed by one statement', async () => {
    const worker = await world.makeWorker();
    const runs = await Promise.all(Array.from({ length: 3 }, () => startSpeaking(undefined, {}, worker)));
    const dueOf = async () => {
      const { rows } = await world.pool.query<{ due: string; transaction: string }>(
        'select due_at::text as due, xmin::text as transaction from run_work where holder = $1 order by run_id',
        [worker.holder],
      );
      return rows;
    };
    const before = await dueOf();
    worker.leases.start();
    const isLater = async () => (await dueOf()).every(({ due }, i) => due > (before[i]?.due ?? ''));
    await eventually(isLater, { what: 'the leases are renewed' });
    const after = await dueOf();
    await worker.leases.stop();
    expect(after).toHaveLength(3);
    // Compares transactions, because times can differ around any limit.
    expect(new Set(after.map(({ transaction }) => transaction)).size).toBe(1);
    worker.engine.drain();
    worker.engine.cutSteps();
    await Promise.all(runs.map(({ execution }) => execution));
  });
});

describe('an unavailable database', () => {
  it('for less than the lease delays the work, and loses or repeats nothing', async () => {
    const { proxy, worker } = await makeFarWorker();
    const said = await startSpeaking('/pieces 60 /pause 10', {}, worker);
    proxy.cut();
    await eventually(() => proxy.connectionCount() === 0, { what: 'all connections are cut' });
    proxy.resume();
    await said.execution;
    const { final_output } = await world.summary(said.runId);
    const log = await world.log(said.threadId);
    const deltas = log.flatMap(({ type, content }) => (type === 'agent.message.delta' ? [content] : []));
    expect(deltas.join('')).toBe(final_output?.text);
    expectInvariants(await world.stream(said.threadId));
  });

  it('whose responses are lost for less than the lease does not lose a claim', async () => {
    const { proxy, worker } = await makeFarWorker();
    const said = await world.say('hi');
    const execution = worker.engine.executeJob(said.job);
    await proxy.dropNextAnswer((request) => request.includes('append'));
    const seconds = async () => {
      const { rows } = await world.pool.query<{ now: number }>(
        'select extract(epoch from clock_timestamp())::float as now',
      );
      return rows[0]!.now;
    };
    // Longer than the retries of a command without a lease.
    const until = (await seconds()) + 2.5;
    while ((await seconds()) < until) await proxy.dropNextAnswer();
    await execution;
    const events = await world.stream(said.threadId);
    expectInvariants(events);
    expect(events.map(({ type }) => type)).not.toContain('run.requeued');
    expect((await world.summary(said.runId)).status).toBe('completed');
  });
});
