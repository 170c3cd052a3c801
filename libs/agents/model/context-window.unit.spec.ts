import fc from 'fast-check';
import { HarnessError, type TranscriptMessage } from '../harness.ts';
import { fitContext } from './context-window.ts';
import { messageTokens, sum } from './estimate.ts';

type ToolMessage = Extract<TranscriptMessage, { role: 'tool' }>;

const countedFor = {
  model: { provider: 'anthropic' as const, name: 'm-1', silenceMs: 1 },
  isShown: (fileId: string) => fileId.startsWith('image'),
};
const tokensOf = (message: TranscriptMessage) => messageTokens(message, countedFor);
const fit = (transcript: readonly TranscriptMessage[], budget: number) => fitContext(transcript, { budget, tokensOf });
const sizeOf = (messages: readonly TranscriptMessage[]) => sum(messages.map(tokensOf));

let calls = 0;
const user = (text: string): TranscriptMessage => ({ role: 'user', text, fileIds: [] });
const said = (text: string): TranscriptMessage => ({ role: 'assistant', text, toolCalls: [] });
function step(...results: (string | ToolMessage)[]): TranscriptMessage[] {
  const tools = results.map((result): ToolMessage => {
    const toolCallId = `call-${++calls}`;
    const plain = { role: 'tool' as const, toolCallId, toolName: 'read', outcome: 'ok' as const };
    return typeof result === 'string' ? { ...plain, result } : { ...result, toolCallId };
  });
  const toolCalls = tools.map(({ toolCallId }) => ({ toolCallId, toolName: 'read', title: 'Read', toolInput: {} }));
  return [{ role: 'assistant', text: '', toolCalls }, ...tools];
}
const resultsOf = (messages: readonly TranscriptMessage[]) =>
  messages.flatMap((message) => (message.role === 'tool' ? [message.result] : []));

describe('the context window', () => {
  it('is left as it is while everything fits', () => {
    const transcript = [user('a'), ...step('b'), said('c'), user('d')];
    expect(fit(transcript, sizeOf(transcript))).toBe(transcript);
  });

  it('loses old results first, and says so', () => {
    const transcript = [user('one'), ...step('€'.repeat(4_000)), said('done'), user('two'), ...step('y'.repeat(400))];
    const fitted = fit(transcript, 1_000);
    expect(resultsOf(fitted)).toEqual(['[This result was left out, to make room: 12,000 bytes.]', 'y'.repeat(400)]);
    expect(fitted).toHaveLength(transcript.length);
  });

  it('then loses old turns whole, and keeps the last message and what follows', () => {
    const old = [user('x'.repeat(2_000)), ...step('a'), said('b')];
    const middle = [user('y'.repeat(2_000)), said('c')];
    const current = [user('z'.repeat(2_000)), ...step('d')];
    expect(fit([...old, ...middle, ...current], 1_300)).toEqual([...middle, ...current]);
    expect(fit([...old, ...middle, ...current], 700)).toEqual(current);
  });

  it('then loses results of the current turn, and cuts the newest two', () => {
    const current = [user('go'), ...step('a'.repeat(4_000)), ...step('b'.repeat(4_000), 'c'.repeat(400))];
    const [first, second, third] = resultsOf(fit(current, 600));
    expect(first).toBe('[This result was left out, to make room: 4,000 bytes.]');
    expect(second).toMatch(/^b+\n\[The rest of this result was left out, to make room: 4,000 bytes in all\.\]$/);
    expect(third).toBe('c'.repeat(400));
  });

  it('leaves out the images of a result with its text', () => {
    const shown: ToolMessage = {
      role: 'tool',
      toolCallId: '',
      toolName: 'look',
      outcome: 'ok',
      result: 'x'.repeat(200),
      fileIds: ['image-1', 'image-2'],
    };
    const transcript = [user('one'), ...step(shown), user('two')];
    expect(fit(transcript, 1_000)[2]).not.toHaveProperty('fileIds');
  });

  it('is too small for what has to stay', () => {
    const tooLong = expect.objectContaining({ code: 'context_too_long' }) as unknown;
    for (const transcript of [
      [user('x'.repeat(5_000))],
      [user('x'), ...step('y'.repeat(4_000)), said('z'.repeat(4_000))],
    ])
      expect(() => fit(transcript, 1_000)).toThrow(tooLong as Error);
    expect(() => fit([user('x')], 0)).toThrow(tooLong as Error);
  });
});

const text = (maxLength: number) => fc.nat(maxLength).map((length) => 'é'.repeat(length));
const anyStep = fc.array(text(4_000), { minLength: 1, maxLength: 3 }).map((results) => step(...results));
const anyTurn = fc
  .tuple(text(300), fc.array(anyStep, { maxLength: 4 }), fc.option(text(300)))
  .map(([asked, steps, answer]) => [user(asked), ...steps.flat(), ...(answer === null ? [] : [said(answer)])]);
const anyTranscript = fc.array(anyTurn, { minLength: 1, maxLength: 6 }).map((turns) => turns.flat());

/** Null where it is too long. */
function fitOrNot(transcript: readonly TranscriptMessage[], budget: number): readonly TranscriptMessage[] | null {
  try {
    return fit(transcript, budget);
  } catch (error) {
    if (error instanceof HarnessError) return null;
    throw error;
  }
}

describe('whatever the transcript, what is kept', () => {
  it('fits the budget, has a result for each call, and all from the last user message on', () => {
    let fitted = 0;
    fc.assert(
      fc.property(anyTranscript, fc.integer({ min: 50, max: 8_000 }), (transcript, budget) => {
        const kept = fitOrNot(transcript, budget);
        // It is only ever the current turn that is too long, its results cut as short as is worth it.
        if (kept === null) return;
        fitted++;
        expect(sizeOf(kept)).toBeLessThanOrEqual(budget);
        expect(fit(transcript, budget)).toEqual(kept);
        const open = new Set<string>();
        for (const message of kept) {
          if (message.role === 'tool') expect(open.delete(message.toolCallId)).toBe(true);
          else expect(open.size).toBe(0);
          if (message.role === 'assistant') for (const { toolCallId } of message.toolCalls) open.add(toolCallId);
        }
        expect(kept[0]?.role).toBe('user');
        const shapeOf = (messages: readonly TranscriptMessage[]) =>
          messages
            .slice(messages.findLastIndex(({ role }) => role === 'user'))
            .map((message) => (message.role === 'tool' ? message.toolCallId : message));
        expect(shapeOf(kept)).toEqual(shapeOf(transcript));
      }),
    );
    expect(fitted).toBeGreaterThan(40);
  });

  it('is never refused while the current turn fits as it is', () => {
    fc.assert(
      fc.property(anyTranscript, (transcript) => {
        const current = transcript.slice(transcript.findLastIndex(({ role }) => role === 'user'));
        expect(fitOrNot(transcript, sizeOf(current))).not.toBeNull();
      }),
    );
  });

  it('begins alike for many steps, so that the provider’s cache holds', () => {
    const budget = 20_000;
    const transcript = [user('go')];
    let beginning: readonly TranscriptMessage[] = [];
    let changes = 0;
    const steps = 400;
    for (let i = 0; i < steps; i++) {
      transcript.push(...step('x'.repeat(1_000)));
      const kept = fit(transcript, budget);
      if (beginning.some((message, at) => JSON.stringify(message) !== JSON.stringify(kept[at]))) changes++;
      beginning = kept;
    }
    expect(changes).toBeGreaterThan(5);
    expect(changes).toBeLessThan(steps / 10);
  });

  it('is found by looking at each message once or twice', () => {
    const transcript = Array.from({ length: 500 }, (_, i) => [
      user(`${i}`),
      ...step('x'.repeat(500)),
      said('y'),
    ]).flat();
    let looks = 0;
    fitContext(transcript, { budget: 5_000, tokensOf: (message) => (looks++, tokensOf(message)) });
    expect(looks).toBeLessThan(3 * transcript.length);
  });
});
