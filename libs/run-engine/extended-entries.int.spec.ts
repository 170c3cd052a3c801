import { setImmediate as nextTurn } from 'node:timers/promises';
import { HarnessError, type StepContext, type StepEvent } from '#agents';
import { stepId, toExtendedLogEntry, type ExtendedLogEntry } from '#domain';
import { eventually } from '#testing';
import { makeWorld, type World } from './engine.testing.ts';
import { anotherRunThat, remove, runThat, write } from './folder.testing.ts';
import { gate, message, ok, scripted, scriptedHarness, tool } from './scripted-harness.testing.ts';

// The optional fields of entries, from events that real engines stored.

let world: World;
beforeAll(async () => {
  world = await makeWorld();
});
afterAll(() => world.close());

const logOf = async (threadId: string): Promise<ExtendedLogEntry[]> =>
  (await world.stream(threadId)).flatMap((event) => toExtendedLogEntry(event) ?? []);

const DELTAS: readonly string[] = ['agent.message.delta', 'agent.thinking.delta'];

/** Returns the text of each step, and the voided steps. */
async function stepsOf(threadId: string) {
  const log = await logOf(threadId);
  const deltas = log.filter(({ type }) => DELTAS.includes(type));
  expect(deltas.every(({ messageId, stepId: step }) => messageId !== undefined && messageId === step)).toBe(true);
  const texts = new Map<string | undefined, string>();
  for (const { stepId: step, content } of deltas) texts.set(step, (texts.get(step) ?? '') + content);
  return { said: [...texts], voided: log.flatMap(({ voidedStepId }) => voidedStepId ?? []) };
}

it('numbers the steps of a Run, and names the one that failed and ran again', async () => {
  let failed = false;
  const step = async function* ({ transcript }: StepContext): AsyncGenerator<StepEvent> {
    yield { type: 'thinking', text: 'Hm. ' };
    if (!transcript.some(({ role }) => role === 'tool')) return void (yield message('I look.', 'look'));
    yield { type: 'text', text: 'All ' };
    if (!failed) {
      failed = true;
      // Text of the turn in which a step fails is not stored.
      await nextTurn();
      throw new HarnessError('provider_unavailable');
    }
    yield message('All done.');
  };
  const { engine } = await world.makeWorker({
    harnesses: [scriptedHarness(step, [tool('look', async () => ok('seen'))])],
  });
  const { threadId, runId, job } = await world.say('x', scripted);
  await engine.executeJob(job);
  await engine.executeJob({ ...job, dispatch: 2 });
  expect((await world.summary(runId)).status).toBe('completed');
  const { said, voided } = await stepsOf(threadId);
  expect(said).toEqual([
    [stepId(runId, 1, 1), 'Hm. I look.'],
    [stepId(runId, 1, 2), expect.stringMatching(/^Hm\. (All )?$/)],
    [stepId(runId, 2, 1), 'Hm. All done.'],
  ]);
  expect(voided).toEqual([stepId(runId, 1, 2)]);
});

it('stores the thinking and the number of a step with its message, and does not send the thinking to a harness', async () => {
  const step = async function* (): AsyncGenerator<StepEvent> {
    yield { type: 'thinking', text: 'Hm\u0000. ' };
    yield { type: 'thinking', text: 'So.' };
    yield message('Done.');
  };
  const { engine } = await world.makeWorker({ harnesses: [scriptedHarness(step)] });
  const { threadId, job } = await world.say('x', scripted);
  await engine.executeJob(job);
  const stored = (await world.stream(threadId)).find(({ type }) => type === 'assistant.message_added');
  expect(stored?.data).toMatchObject({ text: 'Done.', thinking: 'Hm. So.', step: 1 });
  const bounds = { events: 1_000, bytes: 1_000, characters: 5, note: '…' };
  const read = await world.store.readTranscript(threadId, bounds, { hasStops: false });
  expect(read.map(({ type }) => type)).toEqual(['message.added', 'assistant.message_added']);
  expect(JSON.stringify(read)).not.toContain('So.');
});

it('names the step of a worker that was lost', async () => {
  const lost = gate();
  let isFirst = true;
  const step = async function* (): AsyncGenerator<StepEvent> {
    yield { type: 'text', text: 'Half' };
    if (isFirst) {
      isFirst = false;
      await lost.pass();
    }
    yield message('Half and half.');
  };
  const harnesses = [scriptedHarness(step)];
  const [first, second] = [await world.makeWorker({ harnesses }), await world.makeWorker({ harnesses })];
  const { threadId, runId, job } = await world.say('x', scripted);
  const executed = first.engine.executeJob(job);
  await lost.reached;
  await eventually(async () => (await logOf(threadId)).some(({ content }) => content === 'Half'), {
    what: 'it is said',
  });
  await world.endLease(runId);
  await world.makeReaper().reap(new AbortController().signal);
  await second.engine.executeJob({ ...job, dispatch: 2 });
  lost.open();
  await executed;
  expect(await stepsOf(threadId)).toEqual({
    said: [
      [stepId(runId, 1, 1), 'Half'],
      [stepId(runId, 2, 1), 'Half and half.'],
    ],
    voided: [stepId(runId, 1, 1)],
  });
});

it('names files that a tool creates, changes and deletes', async () => {
  const said = await runThat(world, await world.say('x', scripted), write('docs/plan.md', 'old'));
  await anotherRunThat(world, said, write('docs/plan.md', 'new'));
  await anotherRunThat(world, said, remove('docs/plan.md'));
  await anotherRunThat(world, said, async ({ saveArtifact }) => {
    await saveArtifact({ name: 'image.png', mimeType: null, bytes: new Uint8Array([1]) });
  });
  const told = (await logOf(said.threadId)).flatMap(({ type, name, kind, action }) =>
    type === 'file.changed' || type === 'session_files.updated' ? [[type, name, kind, action]] : [],
  );
  expect(told).toEqual([
    ['file.changed', 'plan.md', 'artifact', 'created'],
    ['session_files.updated', 'plan.md', 'artifact', 'attached'],
    ['file.changed', 'plan.md', 'artifact', 'changed'],
    ['session_files.updated', 'plan.md', 'artifact', 'deleted'],
    ['file.changed', 'image.png', 'artifact', 'created'],
    ['session_files.updated', 'image.png', 'artifact', 'attached'],
  ]);
});
