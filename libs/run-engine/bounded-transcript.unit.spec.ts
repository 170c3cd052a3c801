import type { RecordedFact } from '#domain';
import { collectGarbage } from '#testing';
import { BoundedTranscript } from './bounded-transcript.ts';
import { NOTHING_EARLIER, nextAction, type Rules } from './next-action.ts';
import { answered, call, completed, said, stopped } from './transcript.testing.ts';
import { toMessages, type TranscriptEvent } from './transcript.ts';

const BOUNDS = { bytes: 1_000, characters: 10, note: '…' };
const fence = { runId: 'A', attempt: 1 };
const usage = { inputTokens: 1, outputTokens: 1 };

const long = (letter: string, length = 300) => letter.repeat(length);

/** Returns the events of a step with a long text, input and result. */
function step(id: string): TranscriptEvent[] {
  const message = answered(long('s'), [{ ...call(id), toolInput: { text: long('i') } }]);
  const result = completed(id);
  return [
    { ...message, data: { ...message.data, continuation: { thought: long('c') }, usage } } as TranscriptEvent,
    { ...result, data: { ...result.data, result: long('r') } } as TranscriptEvent,
  ];
}

function bounded(events: TranscriptEvent[], { bytes = BOUNDS.bytes, slack = 0 } = {}): readonly TranscriptEvent[] {
  const transcript = new BoundedTranscript([said(long('q'))], { ...BOUNDS, bytes }, slack);
  for (const { type, data } of events) transcript.add({ type, data } as RecordedFact, fence);
  return transcript.events;
}

const isCut = (event: TranscriptEvent): boolean => JSON.stringify(event.data).length < 300;

it('keeps the newest events whole, and cuts older ones', () => {
  const steps = ['1', '2', '3', '4'].flatMap(step);
  const events = bounded(steps, { bytes: 1_600 });
  expect(events.map(isCut)).toEqual([false, true, true, true, true, true, false, false, false]);
  expect(events[1]!.data).toEqual({ text: 'ssssssssss…', toolCalls: [call('1')], usage });
  expect(events[2]!.data).toEqual({ ...steps[1]!.data, result: 'rrrrrrrrrr…' });
  expect(events.slice(6)).toEqual(steps.slice(5));
});

it('is the same for a Run that was booted at any step', () => {
  const steps = ['1', '2', '3', '4'].flatMap(step);
  const events = bounded(steps);
  expect(new BoundedTranscript([...events], BOUNDS, 0).events).toEqual(events);
});

it('cuts nothing until the limit and the slack are exceeded', () => {
  const steps = ['1', '2'].flatMap(step);
  expect(bounded(steps, { slack: 2_000 }).slice(1)).toEqual(steps);
});

it('keeps the newest message of the model whole at any size, because its calls may have to run', () => {
  const [message, result] = step('1') as [TranscriptEvent, TranscriptEvent];
  const events = bounded([message, result], { bytes: 0 });
  expect(events.map(isCut)).toEqual([false, false, true]);
  expect(events[1]).toEqual(message);
  const later = bounded([message, result, ...step('2')], { bytes: 0 });
  expect(later.map(isCut)).toEqual([false, true, true, false, true]);
});

it('cuts invalid input of the model, and never within a character', () => {
  const toolCalls = [{ ...call('1'), invalidInput: `${'x'.repeat(9)}😀${long('x')}` }];
  const events = bounded([answered('', toolCalls), answered(`${'x'.repeat(9)}😀${long('x')}`), answered('')], {
    bytes: 0,
  });
  expect(events[1]!.data).toEqual({ text: '', toolCalls: [{ ...call('1'), invalidInput: 'xxxxxxxxx' }] });
  expect(events[2]!.data).toEqual({ text: 'xxxxxxxxx…', toolCalls: [] });
});

it('cuts the text of an old stopped message, and counts it', () => {
  const events = [said('q'), stopped(long('x')), stopped('short'), ...step('1')];
  const transcript = new BoundedTranscript(events, { ...BOUNDS, bytes: 0 }, 300);
  expect(transcript.events.slice(1, 3).map(({ data }) => data)).toEqual([{ text: 'xxxxxxxxxx…' }, { text: 'short' }]);
  expect(new BoundedTranscript([stopped(long('x'))], { ...BOUNDS, bytes: 0 }, 300).events.some(isCut)).toBe(false);
  expect(new BoundedTranscript([stopped(long('x', 301))], { ...BOUNDS, bytes: 0 }, 300).events.some(isCut)).toBe(true);
});

it('changes neither the next action of a Run nor its messages', () => {
  const rules: Rules = {
    runId: 'A',
    limits: { maxSteps: 100, maxTokens: 9 },
    pricesOf: () => ({ input: 0, output: 0 }),
    earlier: NOTHING_EARLIER,
    inputProblem: () => null,
    tools: new Map([['free', { policy: 'allow', idempotent: false, readOnly: false }]]),
  };
  const steps = ['1', '2', '3', '4', '5'].flatMap(step);
  const shapes = (events: readonly TranscriptEvent[]) =>
    toMessages(events).map((message) => ({ ...message, text: '', result: '', toolCalls: [], continuation: null }));
  for (let count = 0; count <= steps.length; count++) {
    const events = steps.slice(0, count);
    const cut = bounded(events, { bytes: 0 });
    expect(nextAction(cut, rules)).toEqual(nextAction([said('q'), ...events], rules));
    expect(shapes(cut)).toEqual(shapes([said('q'), ...events]));
  }
});

it('costs the same per step after hundreds of steps as after a few', () => {
  const transcript = new BoundedTranscript([said('q')], BOUNDS, 5_000);
  let cuts = 0;
  for (let i = 0; i < 400; i++) {
    const before = transcript.events.filter(isCut).length;
    for (const { type, data } of step(String(i))) transcript.add({ type, data } as RecordedFact, fence);
    if (transcript.events.filter(isCut).length > before) cuts += 1;
  }
  // A step adds some 1,200 units, and 5,000 accumulate before a cut.
  expect(cuts).toBeLessThan(400 / 4);
  expect(cuts).toBeGreaterThan(400 / 8);
});

it('releases the memory of cut texts', () => {
  const MIB = 1024 * 1024;
  const transcript = new BoundedTranscript([said('q')]);
  const before = heapUsed();
  for (let i = 0; i < 400; i++) {
    // Smaller texts than Node keeps outside V8's heap.
    const result = Buffer.alloc(MIB / 4, i).toString('latin1');
    for (const { type, data } of [answered('', [call(String(i))]), completed(String(i))])
      transcript.add({ type, data: 'result' in data ? { ...data, result } : data } as RecordedFact, fence);
  }
  // 8 MiB, the slack, and the memory of Jest. The texts had 100 MiB.
  expect((heapUsed() - before) / MIB).toBeLessThan(30);
  expect(transcript.events).toHaveLength(801);
});

/** Returns the used bytes of the heap after a garbage collection. */
function heapUsed(): number {
  collectGarbage();
  return process.memoryUsage().heapUsed;
}
