import { randomBytes } from 'node:crypto';
import { ulid } from 'ulid';
import { runError, type Command } from '#domain';
import { addMessage, apply, createThread, newRun, openFixture, piece, record, type Fixture } from './store.testing.ts';
import { absentThread } from './handle-commands.ts';

let on: Fixture;
beforeAll(async () => {
  on = await openFixture();
});
afterAll(() => on.close());

const WHOLE = { events: 1_000, bytes: 1_000, characters: 5, note: '…' };

/** Turns short lines into commands on one Thread: `say x`, `lose`, `interrupt` and so on are about the newest claim. */
class Story {
  private runId = ulid();
  private attempt = 0;
  private dispatch = 1;

  begin(): Command[] {
    return [createThread(), addMessage('Hello', newRun(this.runId)), ...this.claim()];
  }

  commandsOf(line: string): Command[] {
    const [word, text = ''] = line.split(/ (.*)/s);
    const fence = { runId: this.runId, attempt: this.attempt };
    const toolCallId = text;
    switch (word) {
      case 'say':
        return [record(fence, piece(text))];
      case 'think':
        return [record(fence, { type: 'assistant.thinking_added', data: { text } })];
      case 'message':
        return [record(fence, { type: 'assistant.message_added', data: { text, toolCalls: [] } })];
      case 'ask':
        return [{ ...fence, type: 'wait_for_decisions', requests: [{ requestId: ulid(), toolCallId }] }];
      case 'lose':
        this.dispatch += 1;
        return [{ ...fence, type: 'hand_over_run' }];
      case 'claim':
        return this.claim();
      case 'interrupt':
        return [{ type: 'interrupt', runId: null, by: 'P' }];
      case 'fail':
        return [{ ...fence, type: 'fail_run', error: runError('provider_auth'), jitter: 0 }];
      case 'expire':
        return [{ ...fence, type: 'expire_run', limit: 'work', dispatch: this.dispatch }];
      case 'enqueue':
        return [addMessage('And?', newRun(), 'enqueue')];
      case 'interrupt-by-message':
        return this.next((run) => ({ ...addMessage('No', run), whenBusy: 'interrupt' }) as Command);
      case 'next':
        return [...this.next((run) => addMessage('Next', run)), ...this.claim()];
      case 'wait-in-queue':
        return this.next((run) => addMessage('Next', run));
      case 'retry': {
        const { runId } = this;
        return [...this.next((run) => ({ type: 'retry_run', runId, run })), ...this.claim()];
      }
      default:
        throw new Error(`no such line: ${line}`);
    }
  }

  private next(command: (run: ReturnType<typeof newRun>) => Command): Command[] {
    Object.assign(this, { runId: ulid(), attempt: 0, dispatch: 1 });
    return [command(newRun(this.runId))];
  }

  private claim(): Command[] {
    const { runId, dispatch } = this;
    this.attempt += 1;
    const { attempt } = this;
    return [
      { type: 'claim_run', runId, dispatch, holder: 'worker' },
      { type: 'start_run', runId, attempt },
    ];
  }
}

async function tell(lines: string[]): Promise<string> {
  const threadId = ulid();
  const story = new Story();
  await apply(on.handler, { threadId, from: absentThread(threadId), commands: story.begin() });
  for (const line of lines) await apply(on.handler, { threadId, commands: story.commandsOf(line) });
  return threadId;
}

const stoppedIn = async (threadId: string, bounds = WHOLE) =>
  (await on.store.readTranscript(threadId, bounds, await on.store.measureTranscript(threadId, bounds))).flatMap(
    ({ type, data }) => (type === 'run.cancelled' ? [(data as unknown as { text: string }).text] : []),
  );

it.each<[string, string[], string[]]>([
  ['the unfinished message', ['say Half ', 'say an answer', 'interrupt'], ['Half an answer']],
  ['a message that another message interrupts', ['say Half', 'interrupt-by-message'], ['Half']],
  ['the text of each stop', ['say One', 'interrupt', 'next', 'say Two', 'interrupt'], ['One', 'Two']],
  ['the text of a stop after a retry', ['say One', 'interrupt', 'retry', 'say Two', 'interrupt'], ['One', 'Two']],
  ['the text after the last message', ['say First.', 'message First.', 'say Second', 'interrupt'], ['Second']],
  ['the text after the last claim', ['say Void', 'lose', 'claim', 'say Seen', 'interrupt'], ['Seen']],
  ['the text before and after other messages', ['say One ', 'enqueue', 'say two', 'interrupt'], ['One two']],
  ['no text before a requeue', ['say Void', 'lose', 'interrupt'], []],
  ['no text before a requeue, even if the next claim adds none', ['say Void', 'lose', 'claim', 'interrupt'], []],
  ['no text of a stored message', ['say Whole.', 'message Whole.', 'interrupt'], []],
  ['no text while a person is asked', ['say Shall I?', 'message Shall I?', 'ask call', 'interrupt'], []],
  ['no thinking', ['think Hm', 'interrupt'], []],
  ['no text of a Run that never started', ['say Half', 'interrupt', 'wait-in-queue', 'interrupt'], ['Half']],
  ['no text of a failed Run', ['say Half', 'fail'], []],
  ['no text of an expired Run', ['say Half', 'expire'], []],
])('the transcript of cancelled Runs has %s', async (_what, lines, texts) => {
  expect(await stoppedIn(await tell(lines))).toEqual(texts);
});

it('the transcript has each stopped text at its stop', async () => {
  const threadId = await tell(['say Half', 'interrupt', 'next', 'say Done.', 'message Done.']);
  const types = (await on.store.readTranscript(threadId, WHOLE, { hasStops: true })).map(({ type }) => type);
  expect(types).toEqual(['message.added', 'run.cancelled', 'message.added', 'assistant.message_added']);
});

describe('a Thread that is loaded with its transcript', () => {
  it('is the same as if both are read separately', async () => {
    const threadId = await tell(['say Done.', 'message Done.', 'fail', 'next']);
    const loaded = await on.store.loadWithTranscript(threadId, WHOLE);
    const size = await on.store.measureTranscript(threadId, WHOLE);
    const events = await on.store.readTranscript(threadId, WHOLE, size);
    expect(loaded).toEqual({ thread: await on.store.load(threadId), small: { size, events } });
    expect(events).toHaveLength(3);
  });

  it.each([
    ['has the text of a stop', ['say Half', 'interrupt']],
    ['is large', [`message ${'x'.repeat(40_000)}`]],
  ])('lacks a transcript that %s', async (_, story) => {
    const threadId = await tell(story);
    const bounds = { ...WHOLE, bytes: 1_000_000 };
    const loaded = await on.store.loadWithTranscript(threadId, bounds);
    expect(loaded!.small).toEqual({ events: null, size: await on.store.measureTranscript(threadId, bounds) });
  });

  it.each([
    ['has many entries', Array.from({ length: 501 }, () => 'message Done.')],
    ['is stored in many bytes', [`message ${randomBytes(20_000).toString('hex')}`]],
  ])('is not even measured if its transcript %s', async (_, story) => {
    const threadId = await tell(story);
    expect((await on.store.loadWithTranscript(threadId, WHOLE))!.small).toBeNull();
  });

  it('is null if there is none', async () => {
    expect(await on.store.loadWithTranscript(ulid(), WHOLE)).toBeNull();
  });
});

describe('the limits of stopped texts', () => {
  const lines = (text: string) => [`say ${text}`, 'interrupt', 'next'];

  it('keep the newest texts whole, and the beginnings of the others', async () => {
    const threadId = await tell(['an older one', 'a short one', 'the newest'].flatMap(lines));
    expect(await stoppedIn(threadId, { ...WHOLE, bytes: 12 })).toEqual(['an ol…', 'a sho…', 'the newest']);
    expect(await stoppedIn(threadId, { ...WHOLE, bytes: 0, characters: 11 })).toEqual([
      'an older one',
      'a short one',
      'the newest',
    ]);
  });

  it('keep only the newest 100 texts', async () => {
    const threadId = await tell(Array.from({ length: 102 }, (_, i) => lines(`Text ${i}`)).flat());
    const texts = await stoppedIn(threadId);
    expect([texts.length, texts[0], texts.at(-1)]).toEqual([100, 'Text 2', 'Text 101']);
  });

  it('apply to the measured size', async () => {
    const bytesOf = async (text: string, bounds = WHOLE) =>
      (await on.store.measureTranscript(await tell(lines(text)), bounds)).bytes;
    const [short, long] = ['x', 'x'.repeat(901)];
    expect((await bytesOf(long)) - (await bytesOf(short))).toBe(900);
    // Four bytes for each of at most five characters.
    const old = { ...WHOLE, bytes: 0 };
    expect((await bytesOf(long, old)) - (await bytesOf(short, old))).toBe(19);
  });
});
