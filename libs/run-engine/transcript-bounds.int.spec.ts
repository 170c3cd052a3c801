import { ulid } from 'ulid';
import { HarnessError, type StepContext, type StepEvent } from '#agents';
import type { RecordedFact } from '#domain';
import { BoundedTranscript, TRANSCRIPT_BOUNDS } from './bounded-transcript.ts';
import { makeWorld, type World } from './engine.testing.ts';
import { message, ok, scripted, scriptedHarness, tool, useTools } from './scripted-harness.testing.ts';
import { transcriptOf, type TranscriptEvent } from './transcript.ts';

let world: World;
beforeAll(async () => {
  world = await makeWorld();
});
afterAll(() => world.close());

const MIB = 1024 * 1024;
const KIB = 1024;

type Step = (context: StepContext) => AsyncIterable<StepEvent>;

async function execute(step: Step, tools: ReturnType<typeof tool>[]) {
  const { engine } = await world.makeWorker({ harnesses: [scriptedHarness(step, tools)] });
  const said = await world.say('x', scripted);
  await engine.executeJob(said.job);
  return said;
}

const read = async (threadId: string, bounds: Partial<typeof TRANSCRIPT_BOUNDS> = {}) =>
  (await world.store.readTranscript(
    threadId,
    { ...TRANSCRIPT_BOUNDS, ...bounds },
    { hasStops: true },
  )) as TranscriptEvent[];

const sizeOf = (value: unknown): number => JSON.stringify(value).length;
/** Removes the positions in the stream, which the bounds do not affect. */
const inWords = (events: readonly TranscriptEvent[]) =>
  events.map(({ type, data, runId, attempt }) => ({ type, data, runId, attempt }));

describe('a Run of 50 steps with results of 200 KiB', () => {
  const given: number[] = [];
  let threadId: string;
  beforeAll(async () => {
    const fetches = tool('fetches', async () => ok('ä'.repeat(100 * KIB)));
    ({ threadId } = await execute(
      async function* ({ transcript }) {
        given.push(sizeOf(transcript));
        const { length } = transcript.filter(({ role }) => role === 'assistant');
        yield length < 50 ? message('', 'fetches') : message('done');
      },
      [fetches],
    ));
  });

  it('gives its harness a bounded transcript after any number of steps', () => {
    expect(given).toHaveLength(51);
    // In UTF-16 units. Each of these has two bytes.
    expect(Math.max(...given)).toBeLessThan(5 * MIB + 2 * MIB);
    expect(given[10]).toBeGreaterThan(10 * 100 * KIB);
  });

  it('boots with a bounded transcript and the same steps', async () => {
    const all = await read(threadId, { bytes: 1_000 * MIB });
    const events = await read(threadId);
    expect(Buffer.byteLength(JSON.stringify(all))).toBeGreaterThan(50 * 200 * KIB);
    expect(Buffer.byteLength(JSON.stringify(events))).toBeLessThan(8 * MIB + 50 * 5 * KIB);
    expect(events.map(({ type }) => type)).toEqual(all.map(({ type }) => type));
    expect(events.slice(-20)).toEqual(all.slice(-20));
  });
});

describe('the statement of readTranscript', () => {
  const note = '…';
  const characters = 10;
  const long = 'x'.repeat(100);
  const step: Step = async function* ({ transcript }) {
    const steps = transcript.filter(({ role }) => role === 'assistant').length;
    const toolCalls = [
      { toolName: 'look', toolInput: { text: long } },
      { toolName: 'look', toolInput: { a: 1 } },
      { toolName: 'look', toolInput: {}, invalidInput: long },
    ];
    yield { type: 'usage', inputTokens: 3, outputTokens: 2 };
    yield { type: 'message', text: long, toolCalls: steps < 3 ? toolCalls : [], continuation: { long } };
  };

  it('cuts older texts like a running Run', async () => {
    const { threadId } = await execute(step, [tool('look', async () => ok(long))]);
    const all = await read(threadId, { bytes: MIB });
    expect(JSON.stringify(all)).not.toContain(note);
    const cut = new BoundedTranscript([], { bytes: 0, characters, note }, 0);
    for (const { type, data, runId, attempt } of all.slice(1))
      cut.add({ type, data } as RecordedFact, { runId: runId!, attempt: attempt! });
    const events = await read(threadId, { bytes: 0, characters, note });
    expect(inWords(events.slice(1))).toEqual(inWords(cut.events));
    expect(JSON.stringify(events.slice(1, -1))).not.toContain(long);
    expect(events.at(-1)).toEqual(all.at(-1));
  });

  it('cuts messages of people only if they are too large, and ignores results for this', async () => {
    const { threadId } = await execute(useTools(['look']), [tool('look', async () => ok(long.repeat(10)))]);
    const texts = async (bytes: number) =>
      (await read(threadId, { bytes, characters: 0, note })).map(({ type, data }) =>
        type === 'message.added' ? data.text : type === 'tool.completed' ? data.result.length : type,
      );
    expect(await texts(500)).toEqual(['x', 'assistant.message_added', 'tool.started', 1, 'assistant.message_added']);
  });

  it('returns the newest events', async () => {
    const { engine } = await world.makeWorker({
      harnesses: [scriptedHarness(useTools(['look']), [tool('look', async () => ok('seen'))])],
    });
    const { threadId, job, message: next } = await world.say('first', scripted);
    await engine.executeJob(job);
    const runId = ulid();
    await world.handle(threadId, next('second', runId));
    await engine.executeJob({ threadId, runId, dispatch: 1 });
    const all = await read(threadId);
    for (const events of [2, all.length - 1, all.length, all.length + 1])
      expect(await read(threadId, { events })).toEqual(all.slice(-events));
    const sizes = [all.length, 2].map((events) =>
      world.store.measureTranscript(threadId, { ...TRANSCRIPT_BOUNDS, events }),
    );
    const [whole, newest] = await Promise.all(sizes);
    expect(newest!.bytes).toBeLessThan(whole!.bytes);
  });

  it('leaves out steps that the limits of the Run still count', async () => {
    const { engine } = await world.makeWorker({
      harnesses: [scriptedHarness(useTools(['act']), [tool('act', async () => ok('done'))])],
    });
    const limits = { maxSteps: 1 };
    const { threadId, runId, job } = await world.say('x', {
      ...scripted,
      limits,
      tools: [{ pattern: '*', policy: 'ask' }],
    });
    await engine.executeJob(job);
    const [asked] = (await world.stream(threadId)).filter(({ type }) => type === 'tool.confirmation_requested');
    // As many events of other Runs as a transcript has, after the Run's only step.
    await world.ownerPool.query(
      `with moved as (update streams set version = version + $2 where thread_id = $1 returning version - $2 as version)
       insert into events (thread_id, version, id, type, schema_version, data, run_id, attempt, public, occurred_at)
       select $1, moved.version + n, last_event_id || lpad(n::text, 6, '0'), 'tool.started', 1,
              jsonb_build_object('toolCallId', 'other' || n), $3, 1, false, now()
       from moved, streams, generate_series(1, $2) as n where streams.thread_id = $1`,
      [threadId, TRANSCRIPT_BOUNDS.events, ulid()],
    );
    const { requestId } = asked!.data as { requestId: string };
    await world.handle(threadId, { type: 'decide_permission', requestId, decision: 'allow_once', by: 'ann' });
    await engine.executeJob(world.jobs.findLast((ready) => ready.runId === runId)!);
    expect(await world.summary(runId)).toMatchObject({ status: 'failed', error: { code: 'step_limit_reached' } });
  });

  it.each<[string, string]>([
    ['assistant.message_added', '[]'],
    ['assistant.message_added', '5'],
    ['assistant.message_added', '{"text": 5, "toolCalls": []}'],
    ['assistant.message_added', '{"text": "", "toolCalls": {}}'],
    ['assistant.message_added', '{"text": "", "toolCalls": [5, null, {}]}'],
    ['assistant.message_added', `{"text": "", "toolCalls": [], "usage": {"inputTokens": "1"}}`],
    ['tool.started', '"x"'],
    ['tool.completed', '{"result": {}}'],
    ['tool.completed', 'null'],
    ['message.added', '{"text": [], "fileIds": []}'],
  ])('returns a corrupt %s unchanged: %s', async (type, data) => {
    const { threadId, runId } = await execute(useTools(['look']), [tool('look', async () => ok(long))]);
    const of = { runId, queuedAt: undefined, liveRunIds: new Set([runId]) };
    expect(() => transcriptOf([], of)).not.toThrow();
    await world.ownerPool.query('update events set data = $3::jsonb where thread_id = $1 and type = $2', [
      threadId,
      type,
      data,
    ]);
    const events = await read(threadId, { bytes: 0, characters, note });
    expect(() => transcriptOf(events, of)).toThrow(new HarnessError('thread_unreadable'));
  });
});
