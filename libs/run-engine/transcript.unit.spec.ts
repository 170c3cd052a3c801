import { answered, call, completed, decided, said, started, stopped } from './transcript.testing.ts';
import type { TranscriptMessage } from '#agents';
import { toMessages, transcriptOf, type TranscriptEvent } from './transcript.ts';

const AT = '2026-01-01T00:00:00.000Z';
const LATER = '2026-01-01T00:00:00.001Z';

const wordsOf = (events: readonly TranscriptEvent[]) =>
  events.map((event) => ('text' in event.data ? event.data.text : `${event.type} ${event.data.toolCallId}`));

function order(events: TranscriptEvent[], runId: string, { live = [runId] } = {}): string[] {
  return wordsOf(transcriptOf(events, { runId, queuedAt: AT, liveRunIds: new Set(live) }));
}

describe('transcriptOf', () => {
  const called = answered('old', [call('1')]);

  it('equals the stream if Runs follow one another', () => {
    const events = [said('a'), answered('A'), said('b', 'B')];
    expect(order(events, 'B')).toEqual(['a', 'A', 'b']);
  });

  it('leaves out messages that wait behind the Run', () => {
    const events = [said('a'), said('b', 'B'), answered('A1', [call('1')])];
    expect(order(events, 'A', { live: ['A', 'B'] })).toEqual(['a', 'A1']);
  });

  it('puts a message that waited behind the steps of the Run before it', () => {
    const events = [said('a'), answered('', [call('1')]), said('b', 'B'), started('1'), completed('1'), answered('A')];
    expect(order(events, 'B')).toEqual(['a', '', 'tool.started 1', 'tool.completed 1', 'A', 'b']);
  });

  it('keeps that order when the Run continues, and for later Runs', () => {
    const events = [said('a'), said('b', 'B'), said('c', 'C'), answered('A'), answered('B', [], 'B')];
    expect(order(events, 'B', { live: ['B', 'C'] })).toEqual(['a', 'A', 'b', 'B']);
    expect(order(events, 'C')).toEqual(['a', 'A', 'b', 'B', 'c']);
  });

  it('keeps an unanswered message before the next Run', () => {
    const events = [said('a'), answered('A'), said('b', 'B'), said('c', 'C'), answered('C', [], 'C'), said('d', 'D')];
    expect(order(events, 'D')).toEqual(['a', 'A', 'b', 'c', 'C', 'd']);
  });

  it.each<[string, TranscriptEvent[], string[]]>([
    ['stored no step', [], ['a']],
    ['stored a call and its result', [called, completed('1')], ['a', 'old', 'tool.completed 1']],
    ['left a call unfinished', [called, started('1')], ['a', 'old', 'tool.started 1']],
    [
      'was itself a retry',
      [called, completed('1'), answered('more', [call('2')], 'R'), completed('2', { runId: 'R' })],
      ['a', 'old', 'tool.completed 1', 'more', 'tool.completed 2'],
    ],
    [
      'was retried by an earlier release, which dropped its steps',
      [called, started('1'), answered('again', [call('2')], 'R'), completed('2', { runId: 'R' })],
      ['a', 'old', 'tool.started 1', 'again', 'tool.completed 2'],
    ],
  ])('keeps every step for a Run that retries one that %s', (_what, steps, words) => {
    expect(order([said('a'), ...steps], 'B')).toEqual(words);
  });

  it.each<[string, TranscriptEvent[], string, string[]]>([
    [
      'between the calls of the previous Run',
      [said('a'), called, said('b', 'B'), started('1'), completed('1'), answered('A'), said('c', 'C')],
      'C',
      ['a', 'old', 'tool.started 1', 'tool.completed 1', 'A', 'b', 'c'],
    ],
    [
      'before the first step of the previous Run',
      [said('a'), said('b', 'B'), answered('A'), said('c', 'C'), answered('C', [], 'C'), said('d', 'D')],
      'D',
      ['a', 'A', 'b', 'c', 'C', 'd'],
    ],
    [
      'behind a retry that began with a result',
      [said('a'), called, said('b', 'B'), completed('1', { runId: 'R' }), answered('R', [], 'R'), said('c', 'C')],
      'C',
      ['a', 'old', 'tool.completed 1', 'b', 'R', 'c'],
    ],
  ])('never puts an unanswered message between a call and its result: %s', (_what, events, runId, words) => {
    expect(order(events, runId)).toEqual(words);
  });

  it('leaves out a message behind the Run although it was cancelled, so the calls of the Run continue', () => {
    const events = [said('a'), called, started('1'), { ...said('b', 'B'), occurredAt: LATER }];
    expect(order(events, 'A')).toEqual(['a', 'old', 'tool.started 1']);
    expect(order(events, 'R')).toEqual(['a', 'old', 'tool.started 1']);
  });

  it('keeps a stopped message among the steps of its Run', () => {
    const events = [said('a'), said('b', 'B'), called, completed('1'), stopped('half'), answered('B', [], 'B')];
    expect(order(events, 'B')).toEqual(['a', 'old', 'tool.completed 1', 'half', 'b', 'B']);
    expect(order([said('a'), stopped('half'), said('c', 'C')], 'C')).toEqual(['a', 'half', 'c']);
  });

  it('leaves out a message that waits behind a retry', () => {
    const events = [said('a'), called, completed('1'), said('c', 'C'), answered('B', [], 'B')];
    expect(order(events, 'B', { live: ['B', 'C'] })).toEqual(['a', 'old', 'tool.completed 1', 'B']);
    expect(order(events, 'C')).toEqual(['a', 'old', 'tool.completed 1', 'B', 'c']);
  });
});

describe('an event of another shape than this version stores', () => {
  const of = { runId: 'B', queuedAt: AT, liveRunIds: new Set(['B']) };
  const sound = [
    ...[said('a'), answered('', [call('1')]), decided('1', 'allow_once'), started('1'), completed('1')],
    stopped('half'),
  ];
  const nonsense = [undefined, null, 7, [], [null], [{}], {}];
  const refused = (event: object): boolean => {
    try {
      toMessages(transcriptOf([...sound, event as TranscriptEvent], of));
      return false;
    } catch (error) {
      expect(error).toMatchObject({ name: 'HarnessError', code: 'thread_unreadable' });
      return true;
    }
  };

  test.each(sound.map((event) => [event.type, event] as const))('%s: throws thread_unreadable', (_, event) => {
    expect(refused({ ...event, schemaVersion: 1 })).toBe(false);
    expect(refused({ ...event, schemaVersion: 2 })).toBe(true);
    for (const data of [undefined, null, 7, 'text', [], {}]) expect(refused({ ...event, data })).toBe(true);
    const corrupt = Object.keys(event.data).flatMap((field) =>
      nonsense.map((value) => ({ ...event, data: { ...event.data, [field]: value } })),
    );
    expect(corrupt.filter(refused).length).toBeGreaterThan(5);
  });

  const step = { text: '', toolCalls: [] };
  const usage = { inputTokens: 1, outputTokens: 1 };
  const result = completed('1').data;
  it.each<[string, TranscriptEvent, object, object[]]>([
    [
      'the usage of a step',
      answered(''),
      { ...step, usage: { ...usage, cachedInputTokens: 1 } },
      [null, 7, {}, { inputTokens: 1 }, { ...usage, cachedInputTokens: '1' }].map((no) => ({ ...step, usage: no })),
    ],
    [
      'invalid input of a call',
      answered(''),
      { ...step, toolCalls: [{ ...call('1'), invalidInput: '{' }] },
      [null, 7, {}].map((no) => ({ ...step, toolCalls: [{ ...call('1'), invalidInput: no }] })),
    ],
    [
      'the files of a result',
      completed('1'),
      { ...result, fileIds: ['F'] },
      [null, 'F', [7], {}].map((no) => ({ ...result, fileIds: no })),
    ],
  ])('%s may be omitted, but must not have another type', (_, event, good, bad) => {
    expect(refused({ ...event, data: good })).toBe(false);
    for (const data of bad) expect(refused({ ...event, data })).toBe(true);
  });
});

describe('toMessages', () => {
  it('begins with a message of a person, even if that was left out', () => {
    const [first, second] = toMessages([answered('An answer.'), said('q')]);
    expect(first).toMatchObject({ role: 'user', text: '[Earlier messages are left out.]' });
    expect(second).toMatchObject({ role: 'assistant', text: 'An answer.' });
  });

  it('gives every call a result before the next message', () => {
    const events = [
      said('a'),
      answered('', [call('1'), call('2'), call('3')]),
      started('1'),
      completed('1'),
      started('2'),
      said('b', 'B'),
    ];
    expect(toMessages(events)).toMatchObject([
      { role: 'user', text: 'a' },
      { role: 'assistant', toolCalls: [{}, {}, {}] },
      { role: 'tool', toolCallId: '1', outcome: 'ok', result: 'result of 1' },
      { role: 'tool', toolCallId: '2', outcome: 'unknown' },
      { role: 'tool', toolCallId: '3', outcome: 'refused' },
      { role: 'user', text: 'b' },
    ]);
  });

  const half: TranscriptMessage = { role: 'assistant', text: 'half', toolCalls: [], stopped: true };
  it.each<[string, TranscriptEvent[], TranscriptMessage[]]>([
    ['the visible text of a stopped message', [stopped('half')], [half]],
    [
      'a stopped message before the messages of the Run that resumes it',
      [stopped('half'), answered('again', [], 'B')],
      [half, { role: 'assistant', text: 'again', toolCalls: [] }],
    ],
    ['a stopped message without citations', [stopped('ha\uE200cite\uE202x\uE201lf')], [half]],
    ['an unfinished citation as visible text', [stopped('half\uE200cite')], [{ ...half, text: 'half\uE200cite' }]],
  ])('returns %s', (_what, events, messages) => {
    expect(toMessages([said('a'), ...events])).toEqual([{ role: 'user', text: 'a', fileIds: [] }, ...messages]);
  });

  it('returns the same message for the same result, so that its cached size can be used', () => {
    const events = [said('a'), answered('', [call('1')]), started('1'), completed('1')];
    const [once, again] = [toMessages(events), toMessages([...events, said('b', 'B')])];
    expect(once[2]).toMatchObject({ role: 'tool', toolCallId: '1' });
    expect(again[2]).toBe(once[2]);
  });
});
