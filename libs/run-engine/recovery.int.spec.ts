import type { StepContext, StepEvent } from '#agents';
import { makeWorld, type World } from './engine.testing.ts';
import { expectInvariants } from './oracle.testing.ts';
import { gate, message, ok, scripted, scriptedHarness, tool } from './scripted-harness.testing.ts';

let world: World;
beforeAll(async () => {
  world = await makeWorld();
});
afterAll(() => world.close());

/** The points at which a worker hangs forever when it first reaches them, as if it was killed. */
const POINTS = [
  'before the first delta',
  'within the text',
  'before the first message',
  'before the effect of once',
  'after the effect of once',
  'before the effect of again',
  'after the effect of again',
  'before the last delta',
  'before the end',
] as const;
type Point = (typeof POINTS)[number];

/** Makes a harness that writes text, calls a tool that must not be repeated and an idempotent one, and writes more text. */
function crashingHarness(point: Point) {
  const crash = gate();
  const effects: string[] = [];
  let crashed = false;
  const reach = async (at: Point): Promise<void> => {
    if (crashed || at !== point) return;
    crashed = true;
    await crash.pass();
  };
  async function* step({ transcript }: StepContext): AsyncGenerator<StepEvent> {
    if (transcript.some(({ role }) => role === 'tool')) {
      await reach('before the last delta');
      yield { type: 'text', text: 'All ' };
      yield { type: 'text', text: 'done.' };
      await reach('before the end');
      yield message('All done.');
      return;
    }
    await reach('before the first delta');
    yield { type: 'text', text: 'I ' };
    await reach('within the text');
    yield { type: 'text', text: 'work.' };
    await reach('before the first message');
    yield message('I work.', 'once', 'again');
  }
  const effectOf = (name: 'once' | 'again') =>
    tool(
      name,
      async ({ toolCallId }) => {
        await reach(`before the effect of ${name}`);
        effects.push(`${name} ${toolCallId}`);
        await reach(`after the effect of ${name}`);
        return ok(`${name} worked`);
      },
      { idempotent: name === 'again' },
    );
  return { crash, effects, harness: scriptedHarness(step, [effectOf('once'), effectOf('again')]) };
}

describe.each(POINTS)('a worker lost %s', (point) => {
  it('is replaced by another, which ends the Run; late writes of the lost one are refused', async () => {
    const { crash, effects, harness } = crashingHarness(point);
    const lost = await world.makeWorker({ harnesses: [harness] });
    const next = await world.makeWorker({ harnesses: [harness] });
    const { job, threadId, runId } = await world.say('work', scripted);
    const execution = lost.engine.executeJob(job);
    await crash.reached;
    await world.endLease(runId);
    await world.makeReaper().reap(new AbortController().signal);
    expect(world.jobs.at(-1)).toEqual({ threadId, runId, dispatch: 2 });
    await next.engine.executeJob({ threadId, runId, dispatch: 2 });

    const { status, final_output } = await world.summary(runId);
    expect({ status, text: final_output?.text }).toEqual({ status: 'completed', text: 'All done.' });
    const events = await world.stream(threadId);
    // The lost worker continues. None of its writes is stored.
    crash.open();
    await execution;
    expect(await world.stream(threadId)).toHaveLength(events.length);

    expectInvariants(events);
    const once = effects.filter((effect) => effect.startsWith('once'));
    expect(new Set(once).size).toBe(once.length);
    const completions = events.flatMap((event) => (event.type === 'tool.completed' ? [event.data] : []));
    const wasOnce = point.endsWith('of once');
    expect(completions.map(({ toolName, outcome }) => `${toolName} ${outcome}`)).toEqual([
      `once ${wasOnce ? 'unknown' : 'ok'}`,
      'again ok',
    ]);
    if (wasOnce) expect(completions[0]?.result).toMatch(/outcome is unknown/);
    const starts = events.filter(({ type }) => type === 'tool.started');
    expect(starts).toHaveLength(2);
    const log = await world.log(threadId);
    expect(log.filter(({ content }) => content === 'RESCHEDULING')).toHaveLength(1);
    expect(textAfterLastCut(log)).toBe('All done.');
  });
});

/** Joins the deltas after the last cut or tool entry, which are the final output. */
function textAfterLastCut(log: { type: string; content: string }[]): string {
  const cut = log.findLastIndex(({ type, content }) => content === 'RESCHEDULING' || type.startsWith('tool.'));
  return log
    .slice(cut)
    .flatMap(({ type, content }) => (type === 'agent.message.delta' ? [content] : []))
    .join('');
}

it('fails a Run whose workers are all lost', async () => {
  const { job, threadId, runId } = await world.say('work', scripted);
  for (let dispatch = 1; dispatch <= 3; dispatch++) {
    const { crash, harness } = crashingHarness('within the text');
    const { engine } = await world.makeWorker({ harnesses: [harness] });
    const execution = engine.executeJob({ ...job, dispatch });
    await crash.reached;
    await world.endLease(runId);
    await world.makeReaper().reap(new AbortController().signal);
    crash.open();
    await execution;
  }
  expect((await world.summary(runId)).error).toMatchObject({ code: 'worker_lost', retryable: true });
  expectInvariants(await world.stream(threadId));
});
