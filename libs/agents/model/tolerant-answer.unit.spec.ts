import { EventEmitter, once } from 'node:events';
import { anthropic, openAi } from './provider.testing.ts';
import { frames, stepOf } from './tolerant-answers.testing.ts';
import { metrics } from './metrics.ts';

const DONE = 'data: [DONE]';
const { text, finish, usage, delta } = openAi;
const stop = finish('stop');
const message = [anthropic.start(), ...anthropic.text(0, 'hello'), ...anthropic.end('end_turn')];

describe('a connection that stays open', () => {
  const comment = ': still here\n\n';

  it.each([
    ['openai-compatible' as const, [text('hello'), stop, DONE]],
    ['anthropic' as const, message],
  ])('is closed at the end of the answer (%s)', async (provider, sent) => {
    const made = await stepOf({ provider, pieces: [frames(...sent)], ends: false });
    expect(made).toMatchObject({ text: 'hello', closed: true });
    expect(made).not.toHaveProperty('code');
  });

  describe('without the end of the protocol', () => {
    beforeEach(() => void jest.useFakeTimers({ doNotFake: ['setImmediate'] }));
    afterEach(() => void jest.useRealTimers());

    const whole = { choices: [{ message: { content: 'hello' }, finish_reason: 'stop' }], usage: usage(5, 3).usage };

    it.each([
      ['comments', 'openai-compatible' as const, [text('hello'), stop, usage(5, 3)], [5, 3], comment],
      ['comments', 'anthropic' as const, message.slice(0, -1), [10, 20], comment],
      [
        'empty chunks',
        'openai-compatible' as const,
        [text('hello'), stop, usage(5, 3)],
        [5, 3],
        'data: {"choices":[]}\n\n',
      ],
      ['blank events', 'openai-compatible' as const, [text('hello'), stop, usage(5, 3)], [5, 3], 'data: null\n\n'],
      ['pings', 'anthropic' as const, message.slice(0, -1), [10, 20], 'data: {"type":"ping"}\n\n'],
      ['spaces after an answer in one piece', 'openai-compatible' as const, [JSON.stringify(whole)], [5, 3], ' '],
    ])('is closed once nothing but %s has come for 2 s (%s)', async (_what, provider, sent, used, sign) => {
      const requested = new EventEmitter();
      const onRequest = () => void requested.emit('request');
      const making = stepOf({ provider, pieces: [frames(...sent)], ends: false, comment: sign, onRequest });
      // The request is written in real turns of the event loop.
      await once(requested, 'request');
      let isOver = false;
      void making.finally(() => (isOver = true));
      await jest.advanceTimersByTimeAsync(1_999);
      expect(isOver).toBe(false);
      await jest.advanceTimersByTimeAsync(1);
      expect(await making).toMatchObject({ text: 'hello', usage: used, closed: true });
    });
  });
});

it('refuses one JSON text that does not end', async () => {
  const pieces = [Buffer.from('{\n\n'), ...Array.from({ length: 40 }, () => Buffer.from(`${' '.repeat(1 << 20)}\n\n`))];
  const made = await stepOf({ provider: 'openai-compatible', pieces, ends: false });
  expect(made).toMatchObject({ code: 'output_too_large', closed: true });
});

it('counts each oddity by its kind, and logs it once for each version of the agent', async () => {
  const lines: object[] = [];
  const count = async () =>
    (await metrics.providerOddities.get()).values.find(
      ({ labels }) => labels.provider === 'openai-compatible' && labels.kind === 'part',
    )!.value;
  const before = await count();
  const logger = { warn: (fields: object) => void lines.push(fields) };
  const odd = [delta({ content: [{ type: 'hologram' }] }), text('hello'), stop];
  for (let i = 0; i < 2; i++)
    await stepOf({ provider: 'openai-compatible', pieces: [frames(...odd)], logger, model: 'new' });
  expect(await count()).toBe(before + 2);
  expect(lines).toEqual([expect.objectContaining({ kind: 'part', place: 'choices[0].delta.content[]' })]);
});
