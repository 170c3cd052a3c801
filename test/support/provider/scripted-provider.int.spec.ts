import { APICallError, type LanguageModelV3, type LanguageModelV3Message } from '@ai-sdk/provider';
import { eventually } from '#testing';
import { MODELS, result, say, user, type Said } from './say.testing.ts';
import { ScriptedProvider, type ProviderPoint } from './scripted-provider.ts';

/** What the model refuses with. */
async function refusal(said: Promise<Said>): Promise<APICallError> {
  const error: unknown = await said.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!APICallError.isInstance(error)) throw new Error(`not refused, but ${String(error)}`);
  return error;
}

describe.each(['openai', 'anthropic'] as const)('the scripted provider, asked as %s', (protocol) => {
  let provider: ScriptedProvider;
  let model: LanguageModelV3;

  beforeAll(async () => {
    provider = await ScriptedProvider.start({
      scripts: {
        'half-said': { steps: [{ text: ['A', 'B', 'C', 'D'] }] },
        cut: {
          steps: [{ text: ['All ', 'that ', 'fits'], finish: 'length' }],
        },
        'own-event': {
          steps: [
            {
              text: ['Half.', 'Whole.'],
              failures: [
                {
                  errorEventAfterPieces: 1,
                  body: { type: 'error', error: { type: 'api_error', message: 'of my own' } },
                },
              ],
            },
          ],
        },
        filtered: { steps: [{ finish: 'content-filter' }] },
        odd: {
          steps: [
            {
              text: ['At last.'],
              failures: [{ status: 500 }, { status: 418, body: { teapot: true }, headers: { 'x-kind': 'teapot' } }],
            },
          ],
        },
      },
    });
    model = MODELS[protocol](provider);
  });
  afterAll(() => provider.close());

  const lastRequest = () => provider.requests.at(-1)!;
  const text = (said: Said): string => said.texts.join('');

  describe('says what the script says', () => {
    it('in pieces, with usage and the reason for its end', async () => {
      const said = await say(model, [user('script: hello')]);
      expect(said).toMatchObject({ texts: ['Hello', ', I ', 'am ', 'here.'], toolCalls: [], errors: [] });
      expect(said.finish).toMatchObject({
        finishReason: { unified: 'stop' },
        usage: { inputTokens: { total: 12, cacheRead: 0 }, outputTokens: { total: 6 } },
      });
      expect(lastRequest()).toMatchObject({ protocol, script: 'hello', line: 'script: hello', step: 0, refusal: null });
      expect(lastRequest().body).toMatchObject({ stream: true });
    });

    it('its thinking before its text, counted apart', async () => {
      const said = await say(model, [user('script: thinking')]);
      expect(said.thoughts).toEqual(['They greet me. ', 'I should ', 'greet back.']);
      expect(text(said)).toBe('Good morning.');
      expect(said.finish?.usage).toMatchObject({
        inputTokens: { total: 40, noCache: 10, cacheRead: 30 },
        outputTokens: { total: 20, reasoning: 15, text: 5 },
      });
    });

    it('parallel tool calls, and then what they came to', async () => {
      const asked = user('script: parallel-tools\nhello');
      const first = await say(model, [asked]);
      expect(text(first)).toBe('I will ask both.');
      expect(first.finish?.finishReason.unified).toBe('tool-calls');
      expect(first.toolCalls.map(({ toolName, input }) => [toolName, JSON.parse(input) as unknown])).toEqual([
        ['everything__echo', { message: 'hello' }],
        ['everything__get-sum', { a: 2, b: 3 }],
      ]);
      expect(first.inputs.map((pieces) => pieces.length)).toEqual([3, 3]);
      const [echo, sum] = first.toolCalls;
      expect(echo!.toolCallId).not.toBe(sum!.toolCallId);

      const second = await say(model, [asked, first.message, result(echo!, 'Echo: hello'), result(sum!, '5')]);
      expect(text(second)).toBe('They said:\nEcho: hello\n5');
      expect(lastRequest()).toMatchObject({ step: 1 });
    });

    it('envelopes of citations in pieces', async () => {
      const said = await say(model, [user('script: citations')]);
      expect(said.texts).toHaveLength(9);
      expect(text(said).match(/\uE200cite\uE202[^\uE201]+\uE201/g)).toHaveLength(3);
    });

    it('what a tool has said, even if it was nothing', async () => {
      const asked = user('script: thinking-tools\nhello');
      const { message, toolCalls } = await say(model, [asked]);
      expect(text(await say(model, [asked, message, result(toolCalls[0]!, '')]))).toBe('It said: ');
    });

    it('input of a tool that is no JSON', async () => {
      const said = await say(model, [user('script: broken-json')]);
      expect(said.toolCalls.map(({ input }) => input)).toEqual(['{"message": "half of']);
      const told = await say(model, [user('script: broken-json'), said.message, result(said.toolCalls[0]!, 'no JSON')]);
      expect(text(told)).toBe('It was: no JSON');
    });

    it.each([
      ['cut', 'All that fits', 'length'],
      ['filtered', '', 'content-filter'],
    ])('the end that the script %s names', async (script, all, unified) => {
      const said = await say(model, [user(`script: ${script}`)]);
      expect([text(said), said.finish?.finishReason.unified]).toEqual([all, unified]);
    });

    it('the next step to images that follow the results of tools, where the protocol has them there', async () => {
      const asked = user('script: thinking-tools\nhello');
      const { message, toolCalls } = await say(model, [asked]);
      const image = user('Image of a tool’s result: image.png');
      expect(text(await say(model, [asked, message, result(toolCalls[0]!, 'seen'), image]))).toBe('It said: seen');
    });

    it('the same step again to the same request, and the next script to the next message', async () => {
      const asked = user('script: parallel-tools\nhello');
      const first = await say(model, [asked]);
      const again = await say(model, [asked]);
      expect([text(again), again.toolCalls.length]).toEqual([text(first), 2]);
      const told = [asked, first.message, ...first.toolCalls.map((call) => result(call, 'done'))];
      const answered: LanguageModelV3Message = { role: 'assistant', content: [{ type: 'text', text: 'Done.' }] };
      expect(text(await say(model, [...told, answered, user('script: hello')]))).toBe('Hello, I am here.');
      // Two messages in a row, and a user's message right behind the results: one message of Anthropic's.
      expect(text(await say(model, [user('script: thinking'), user('script: hello')]))).toBe('Hello, I am here.');
      expect(text(await say(model, [...told, user('script: hello')]))).toBe('Hello, I am here.');
    });
  });

  describe('fails as the script says', () => {
    const overloaded = protocol === 'openai' ? 503 : 529;

    it.each([
      ['unauthorized', 401, false, protocol === 'openai' ? /API key/ : /x-api-key/],
      ['too-long', 400, false, protocol === 'openai' ? /maximum context length/ : /prompt is too long/],
      ['always-overloaded', overloaded, true, /overloaded/i],
      ['no-quota', protocol === 'openai' ? 429 : 400, protocol === 'openai', /quota|credit balance/],
    ])('%s: %d', async (script, statusCode, isRetryable, message) => {
      const refused = await refusal(say(model, [user(`script: ${script}`)]));
      expect(refused).toMatchObject({ statusCode, isRetryable, message: expect.stringMatching(message) as string });
      expect(lastRequest()).toMatchObject({ script, refusal: null, failure: { times: expect.any(Number) as number } });
    });

    it('as often as it says and to each conversation, and then it answers', async () => {
      for (const conversation of ['one', 'two']) {
        const asked = [user(`script: rate-limited ${conversation}`)];
        const first = await refusal(say(model, asked));
        expect(first).toMatchObject({ statusCode: 429, responseHeaders: { 'retry-after': '1' } });
        const second = await refusal(say(model, asked));
        expect([second.statusCode, second.responseHeaders?.['retry-after']]).toEqual([429, undefined]);
        expect(text(await say(model, asked))).toBe('Sorry for the wait.');
        expect(text(await say(model, asked))).toBe('Sorry for the wait.');
      }
    });

    it('by a status, headers and a body of its own', async () => {
      const asked = [user('script: odd')];
      expect(await refusal(say(model, asked))).toMatchObject({ statusCode: 500, isRetryable: true });
      const teapot = await refusal(say(model, asked));
      expect(teapot).toMatchObject({ statusCode: 418, responseBody: '{"teapot":true}' });
      expect(teapot.responseHeaders).toMatchObject({ 'x-kind': 'teapot' });
    });

    it('by a page for people, with 200', async () => {
      const asked = [user('script: html')];
      expect((await say(model, asked)).finish?.finishReason.unified).not.toBe('stop');
      expect(text(await say(model, asked))).toBe('Back again.');
    });

    it('by an error of its own in mid-stream', async () => {
      const said = await say(model, [user('script: own-event')]);
      expect([said.texts, JSON.stringify(said.errors)]).toEqual([['Half.'], expect.stringContaining('of my own')]);
    });

    it('by an error in mid-stream', async () => {
      const asked = [user('script: overloaded')];
      expect(await refusal(say(model, asked))).toMatchObject({ statusCode: overloaded });
      const said = await say(model, asked);
      expect([said.texts, said.errors]).toEqual([
        ['There was '],
        [expect.objectContaining({ message: expect.stringMatching(/overloaded/i) as string })],
      ]);
      expect(text(await say(model, asked))).toBe('There was a lot to do.');
    });

    it('by not answering, and by not going on', async () => {
      const asked = [user('script: hangs')];
      const waiting = new AbortController();
      const silent = say(model, asked, { abortSignal: waiting.signal });
      await eventually(() => lastRequest().script === 'hangs', { what: 'it was asked' });
      expect(lastRequest().closedAt).toBeNull();
      waiting.abort();
      await expect(silent).rejects.toThrow(/abort/);
      await eventually(() => lastRequest().closedAt !== null, { what: 'the request is closed' });

      const listening = new AbortController();
      const onPart = ({ type }: { type: string }): void => {
        if (type === 'text-delta') listening.abort();
      };
      const said = await say(model, asked, { abortSignal: listening.signal, onPart });
      expect([said.texts, String(said.broken)]).toEqual([['Where '], expect.stringMatching(/abort/i)]);
      expect(text(await say(model, asked))).toBe('Where was I?');
    });

    it('by a reset, and by an end without a reason', async () => {
      const asked = [user('script: reset')];
      const reset = await say(model, asked);
      expect(reset.texts).toEqual(['We were ', 'cut ']);
      expect(reset.broken).toBeInstanceOf(Error);
      const open = await say(model, asked);
      expect([text(open), open.broken]).toEqual(['We were cut off.', undefined]);
      expect(open.finish?.finishReason.unified).not.toBe('stop');
      expect((await say(model, asked)).finish?.finishReason.unified).toBe('stop');
    });
  });

  describe('holds a request', () => {
    it.each<[ProviderPoint, string]>([
      ['asked', ''],
      ['half said', 'AB'],
      ['all said', 'ABCD'],
    ])('at "%s", until it is released', async (point, heard) => {
      const line = `script: half-said ${point}`;
      const hold = provider.hold(point, (request) => request.line === line);
      let soFar = '';
      const said = say(model, [user(line)], {
        onPart: (part) => (soFar += part.type === 'text-delta' ? part.delta : ''),
      });
      const request = await hold.reached;
      await eventually(() => soFar === heard, { what: `"${heard}" was heard` });
      expect(request.closedAt).toBeNull();
      hold.release();
      expect([text(await said), soFar]).toEqual(['ABCD', 'ABCD']);
      expect(request.closedAt).not.toBeNull();
    });

    it('no longer than its caller is there', async () => {
      const hold = provider.hold('asked');
      const caller = new AbortController();
      const said = say(model, [user('script: hello')], { abortSignal: caller.signal });
      const request = await hold.reached;
      caller.abort();
      await expect(said).rejects.toThrow(/abort/);
      await eventually(() => request.closedAt !== null, { what: 'the request is closed' });
    });
  });

  describe('refuses', () => {
    const refused = async (prompt: LanguageModelV3Message[], message: RegExp, by = model): Promise<void> => {
      const said = await refusal(say(by, prompt));
      expect(said).toMatchObject({ statusCode: 400, message: expect.stringMatching(message) as string });
      expect(lastRequest().refusal).toBe(said.message);
    };
    const asked = user('script: parallel-tools\nhello');

    it('a wrong key', async () => {
      const said = await refusal(say(MODELS[protocol](provider, 'sk-wrong'), [user('script: hello')]));
      expect(said.statusCode).toBe(401);
      expect(lastRequest().refusal).not.toBeNull();
    });

    it('a tool call without its result', async () => {
      const { message, toolCalls } = await say(model, [asked]);
      const [echo, sum] = toolCalls;
      const missing = protocol === 'openai' ? /did not have response messages: / : /without `tool_result` blocks/;
      const naming = (id: string): RegExp => new RegExp(`${missing.source}.*${id}`);
      await refused([asked, message, result(echo!, '1'), user('script: hello')], naming(sum!.toolCallId));
      await refused([asked, message, user('script: hello')], naming(echo!.toolCallId));
      await refused([asked, message, result(sum!, '1')], naming(echo!.toolCallId));
      await refused([asked, message, user('script: hello'), result(echo!, '1'), result(sum!, '1')], missing);
    });

    it('a tool result without its call', async () => {
      const { message, toolCalls } = await say(model, [asked]);
      const results = toolCalls.map((call) => result(call, '1'));
      const unasked = protocol === 'openai' ? /must be a response to/ : /unexpected `tool_use_id`/;
      const strange = result({ ...toolCalls[0]!, toolCallId: 'strange' }, '1');
      await refused([asked, message, ...results, strange], unasked);
      await refused([asked, strange], unasked);
    });

    it('what no script is for', async () => {
      await refused([user('hello')], /script: NAME/);
      await refused([user('script: unheard-of')], /no script unheard-of/);
      const done: LanguageModelV3Message = { role: 'assistant', content: [{ type: 'text', text: 'Hi.' }] };
      const more = protocol === 'openai' ? /no step 1/ : /must end with a user message/;
      await refused([user('script: hello'), done], more);
    });
  });
});
