import { pauseIfLong } from '#platform';
import { measureTurns, nightTest } from '#testing';
import { HarnessError, type StepContext, type StepEvent, type TranscriptMessage } from '../harness.ts';
import { agentManifestSchema } from '../manifest.ts';
import { roomWithoutEnd } from '../room.testing.ts';
import { echoHarness } from './echo-harness.ts';

const RUN_ID = '01ARZ3NDEKTSV4RRFFQ69G5FAV';

function contextOf(text: string, more: Partial<StepContext> = {}, settings = {}): StepContext {
  return {
    agentId: RUN_ID,
    threadId: RUN_ID,
    runId: RUN_ID,
    attempt: 1,
    userId: 'user-1',
    manifest: agentManifestSchema.parse({ name: 'Echo', harness: { name: 'echo', ...settings } }),
    transcript: [{ role: 'user', text, fileIds: [] }],
    tools: [],
    files: { list: () => Promise.resolve([]), read: () => Promise.reject(new Error('there are none')) },
    runTask: () => Promise.reject(new Error('there is no task pool')),
    ...roomWithoutEnd(),
    signal: new AbortController().signal,
    ...more,
  };
}

async function step(context: StepContext, crash: () => void = () => undefined): Promise<StepEvent[]> {
  const events: StepEvent[] = [];
  for await (const event of echoHarness({ crash }).step(context)) events.push(event);
  return events;
}

const textsOf = (events: StepEvent[]) => events.flatMap((event) => (event.type === 'text' ? [event.text] : []));
const messageOf = (events: StepEvent[]) => events.find((event) => event.type === 'message');

describe('the echo harness', () => {
  it('says the message back in words, and counts them', async () => {
    expect(await step(contextOf('hello  there'))).toEqual([
      { type: 'text', text: 'You ' },
      { type: 'text', text: 'said: ' },
      { type: 'text', text: 'hello  ' },
      { type: 'text', text: 'there' },
      { type: 'usage', inputTokens: 2, outputTokens: 4 },
      { type: 'message', text: 'You said: hello  there', toolCalls: [] },
    ]);
  });

  it.each(['', 'a', ' leading', 'x /pieces 30', 'x /cite', '😀 \n\n /cite', '/think 1 /pieces 3'])(
    'is deterministic, and the pieces joined are the message: %j',
    async (text) => {
      const [once, again] = [await step(contextOf(text)), await step(contextOf(text))];
      expect(again).toEqual(once);
      expect(textsOf(once).join('')).toBe(messageOf(once)?.text);
    },
  );

  it('asks for tools first and then tells of their results', async () => {
    const asked = messageOf(await step(contextOf('note /tool /artifact /confirm 2')));
    expect(asked?.toolCalls).toEqual([
      { toolName: 'clock', toolInput: {} },
      { toolName: 'write_file', toolInput: { name: 'echo.txt', text: 'note' } },
      { toolName: 'send_note', toolInput: { number: 1, note: 'note' } },
      { toolName: 'send_note', toolInput: { number: 2, note: 'note' } },
    ]);
    const transcript: TranscriptMessage[] = [
      { role: 'user', text: 'note /tool', fileIds: [] },
      { role: 'assistant', text: '', toolCalls: [] },
      { role: 'tool', toolCallId: '1', toolName: 'clock', outcome: 'ok', result: 'Noon.' },
    ];
    const told = messageOf(await step(contextOf('', { transcript })));
    expect(told).toEqual({ type: 'message', text: 'You said: note\nclock (ok): Noon.', toolCalls: [] });
  });

  it.each([
    ['/fail', 1, 'provider_rejected'],
    ['/fail-retryable', 7, 'provider_unavailable'],
    ['/flaky 2', 2, 'provider_unavailable'],
    ['/flaky', 1, 'provider_unavailable'],
  ])('fails on %s in attempt %d', async (text, attempt, code) => {
    const failure = await step(contextOf(text, { attempt })).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(HarnessError);
    expect(failure).toMatchObject({ code });
  });

  it('works again once the flaky attempts are over', async () => {
    expect(messageOf(await step(contextOf('x /flaky 2', { attempt: 3 })))?.text).toBe('You said: x');
  });

  it.each([
    ['/crash', 1, true],
    ['/crash', 2, false],
    ['/crash always', 2, true],
  ])('on %s in attempt %d crashes: %s', async (text, attempt, crashes) => {
    const crash = jest.fn();
    await step(contextOf(text, { attempt }, { allowCrash: true }), crash);
    expect(crash).toHaveBeenCalledTimes(crashes ? 1 : 0);
  });

  it('does not crash where its settings do not allow it', async () => {
    const crash = jest.fn();
    expect(messageOf(await step(contextOf('x /crash'), crash))?.text).toBe('You said: x /crash');
    expect(crash).not.toHaveBeenCalled();
  });

  it('stops between two pieces when told to', async () => {
    const abort = new AbortController();
    const context = contextOf('a b c /pause 60s', { signal: abort.signal });
    const steps = echoHarness().step(context)[Symbol.asyncIterator]();
    await steps.next();
    const next = steps.next();
    abort.abort();
    await expect(next).rejects.toThrow();
  });

  it('says which settings are wrong, by their paths in the manifest', () => {
    const { manifest } = contextOf('', {}, { pauseMs: -1, colour: 'red' });
    expect(echoHarness().checkSettings(manifest)).toEqual([
      { path: ['harness', 'pauseMs'], at: 'value', message: 'must be at least 0' },
      { path: ['harness', 'colour'], at: 'key', message: 'is not a known field' },
    ]);
    expect(echoHarness().checkSettings(contextOf('').manifest)).toEqual([]);
  });
});

nightTest('answers a transcript of 8 MiB, and the longest message, in short turns', async () => {
  const results = Array.from({ length: 8 }, (_, i) => ({
    ...{ role: 'tool' as const, toolCallId: `${i}`, toolName: 'clock', outcome: 'ok' as const },
    result: 'ä '.repeat(512 * 1024),
  }));
  const asked = { role: 'user' as const, text: `/cite ${'a '.repeat(63_000)}`, fileIds: [] };
  const transcript: TranscriptMessage[] = [...results, asked];
  await measureTurns(async () => {
    // As the engine takes its events.
    for await (const _event of echoHarness().step(contextOf('', { transcript }))) await pauseIfLong();
  });
});
