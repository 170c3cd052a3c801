import { measureTurns, nightTest } from '#testing';
import { BoundedTranscript, measure } from './bounded-transcript.ts';
import { NOTHING_EARLIER, callsToCheck, nextAction, type Rules } from './next-action.ts';
import { publicCall, settledFact } from './tool-step.ts';
import { answered, call, completed, said, started } from './transcript.testing.ts';
import { toMessages, transcriptOf, type TranscriptEvent } from './transcript.ts';

const MEBIBYTE = 1024 * 1024;

/** An input with as many parts as a model may give a tool. */
const largestInput = Object.fromEntries(Array.from({ length: 24_999 }, (_, i) => [`key ${i}`, i]));
const step = (i: number, toolInput: Record<string, unknown> = {}): TranscriptEvent[] => [
  answered('', [{ ...call(`${i}`), toolInput }]),
  started(`${i}`),
  completed(`${i}`),
];

/** The most expensive transcripts: of many events, of large inputs, and of large texts. */
const TRANSCRIPTS: Record<string, () => TranscriptEvent[]> = {
  '20,000 steps': () => [said('q'), ...Array.from({ length: 20_000 }, (_, i) => step(i)).flat()],
  '8 MiB of large inputs': () => [
    said('q'),
    // Separate objects, because a cached size must not help with the next.
    ...Array.from({ length: 24 }, (_, i) => step(i, { ...largestInput, i })).flat(),
  ],
  '8 MiB of results': () => [
    said('q'),
    ...Array.from({ length: 8 }, (_, i) => step(i)).flatMap((events) =>
      events.map((event) =>
        event.type === 'tool.completed' ? { ...event, data: { ...event.data, result: 'ä'.repeat(MEBIBYTE) } } : event,
      ),
    ),
  ],
};

const rules: Rules = {
  runId: 'A',
  tools: new Map([['free', { policy: 'allow', idempotent: true, readOnly: true }]]),
  inputProblem: () => null,
  limits: { maxSteps: 1_000_000 },
  pricesOf: () => ({ input: 0, output: 0 }),
  earlier: NOTHING_EARLIER,
};
const asked = { runId: 'A', queuedAt: '2026-01-01T00:00:00.000Z', liveRunIds: new Set(['A']) };

describe.each(Object.entries(TRANSCRIPTS))('a transcript of %s', (_name, make) => {
  // New events for each try, because sizes are cached by event.
  nightTest('is put in order, measured and bounded in short turns', async () => {
    const bound = async (events: TranscriptEvent[]): Promise<void> => {
      const ordered = transcriptOf(events, asked);
      await measure(ordered);
      new BoundedTranscript(ordered);
    };
    await measureTurns(bound, { prepare: make });
  });

  nightTest('is turned into messages and decided on in short turns', async () => {
    const decide = (events: TranscriptEvent[]) => [toMessages(events), nextAction(events, rules), callsToCheck(events)];
    await measureTurns(decide, { prepare: make });
  });
});

it('shows the largest call in a short turn', async () => {
  const large = { ...call('1'), toolInput: { ...largestInput, cited: '\uE200cite\uE202x\uE201' } };
  await measureTurns(() => publicCall(large));
  expect(publicCall(large).toolInput.cited).toBe('');
});

describe('a result of 16 MiB', () => {
  nightTest.each([
    ['letters', 'x'],
    ['NUL', '\0'],
    ['a NUL beside each letter', '\0x'],
    ['half characters', '\uD800'],
    ['letters of three bytes', '漢'],
    ['citation marks', '\uE200'],
  ])('of %s is stored in a short turn', async (_what, unit) => {
    const text = unit.repeat((16 * MEBIBYTE) / unit.length);
    await measureTurns(() => settledFact(call('1'), 'lost', text), { maxMs: 40 });
  });

  it('is marked as cut, even if little is left of it', () => {
    const resultOf = (text: string) => (settledFact(call('1'), 'lost', text).data as { result: string }).result;
    const note = 'it is too large.]';
    for (const text of ['x', '\0', '\0x', '漢'].map((unit) => unit.repeat(16 * MEBIBYTE))) {
      expect(resultOf(text).endsWith(note)).toBe(true);
      expect(Buffer.byteLength(resultOf(text))).toBeLessThanOrEqual(MEBIBYTE);
    }
    const { length } = resultOf('');
    expect(resultOf('x'.repeat(MEBIBYTE - length))).toHaveLength(MEBIBYTE);
    expect(resultOf('x'.repeat(MEBIBYTE - length + 1)).endsWith(note)).toBe(true);
    expect(resultOf('\0'.repeat(MEBIBYTE))).toHaveLength(length);
  });
});

it('returns the same message for an event each time', () => {
  const events = [said('q'), ...step(1)];
  toMessages(events).forEach((message, i) => expect(toMessages(events)[i]).toBe(message));
});
