import { eventually } from '#testing';
import { HarnessError, type StepEvent } from '../harness.ts';
import type { ModelChoice } from './model-settings.ts';
import {
  anthropic,
  apiKey,
  contextWith,
  env,
  eventsOf,
  KEY,
  manifestWith,
  openAi,
  refuses,
  stepsAndProviders,
  streams,
  testHarness,
  type Respond,
} from './provider.testing.ts';

const { stepWith } = stepsAndProviders();

async function failureOf(steps: AsyncIterable<StepEvent>): Promise<HarnessError> {
  const error: unknown = await eventsOf(steps).catch((thrown: unknown) => thrown);
  if (!(error instanceof HarnessError)) throw new Error('It did not fail as the catalogue has it.', { cause: error });
  return error;
}

describe('a step that fails', () => {
  it.each<[string, Respond, Partial<ModelChoice>, object]>([
    [
      'a refused key',
      refuses(401, { error: { message: `Incorrect API key: ${KEY}`, type: 'invalid_request_error' } }),
      {},
      { code: 'provider_auth' },
    ],
    [
      'a rate limit',
      refuses(429, { error: { message: 'Slow down', code: 'rate_limit_exceeded' } }, { 'retry-after': '7' }),
      {},
      { code: 'provider_rate_limited', more: { retryAfterMs: 7_000 } },
    ],
    [
      'a quota that is used up',
      refuses(429, { error: { message: 'x', code: 'insufficient_quota' } }),
      {},
      { code: 'provider_quota_exhausted' },
    ],
    ['an error without JSON', refuses(502, '<html>bad gateway</html>'), {}, { code: 'provider_unavailable' }],
    ['HTML instead of a stream', refuses(200, '<html>hello</html>'), {}, { code: 'provider_rejected' }],
    ['JSON that is no piece', streams([{ hello: 'world' }]), {}, { code: 'provider_rejected' }],
    [
      'a stream without an end',
      refuses(200, `data: ${JSON.stringify(openAi.text('Half an'))}\n\n`),
      {},
      { code: 'provider_unavailable' },
    ],
    [
      'an error amid a stream',
      streams([openAi.text('Half'), { error: { message: 'Too long', code: 'context_length_exceeded' } }]),
      {},
      { code: 'context_too_long' },
    ],
    [
      'a filtered answer',
      streams([openAi.text('Half'), openAi.finish('content_filter')]),
      {},
      { code: 'content_filtered' },
    ],
    [
      'thinking that leaves no room',
      streams([openAi.delta({ reasoning_content: 'Hm' }), openAi.finish('length')]),
      {},
      { code: 'output_too_large' },
    ],
    [
      'arguments without end',
      streams(
        Array.from({ length: 20 }, (_, i) => openAi.call('write', (i === 0 ? '{"a":"' : '') + 'x'.repeat(60_000))),
      ),
      {},
      { code: 'output_too_large' },
    ],
    [
      'an event of more than 8 MiB',
      streams([{ ...openAi.text('a'), more: 'x'.repeat(9 * 1024 * 1024) }, openAi.finish('stop')]),
      {},
      { code: 'output_too_large' },
    ],
    [
      'an event of more than 50,000 parts',
      streams([{ ...openAi.text('a'), more: Array(60_000).fill(0) }, openAi.finish('stop')]),
      {},
      { code: 'output_too_large' },
    ],
    [
      'an overloaded anthropic, before',
      refuses(
        529,
        { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } },
        { 'retry-after': '3' },
      ),
      { provider: 'anthropic' },
      { code: 'provider_unavailable', more: { retryAfterMs: 3_000 } },
    ],
    [
      'an overloaded anthropic, at once in the stream',
      streams([{ type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } }]),
      { provider: 'anthropic' },
      { code: 'provider_unavailable' },
    ],
    [
      'a rate limit of anthropic amid the stream',
      streams([anthropic.start(), { type: 'error', error: { type: 'rate_limit_error', message: 'Slow down' } }]),
      { provider: 'anthropic' },
      { code: 'provider_rate_limited' },
    ],
    [
      'a stream of anthropic without an end',
      streams([anthropic.start(), ...anthropic.text(0, 'Half')]),
      { provider: 'anthropic' },
      { code: 'provider_unavailable' },
    ],
    [
      'a refusal of anthropic',
      streams([anthropic.start(), ...anthropic.end('refusal')]),
      { provider: 'anthropic' },
      { code: 'content_filtered' },
    ],
  ])('names %s, and tells nothing that must not get out', async (_, respond, model, expected) => {
    const { steps } = await stepWith(respond, model, {
      transcript: [{ role: 'user', text: 'PRIVATE', fileIds: [] }],
    });
    const failure = await failureOf(steps);
    expect(failure).toMatchObject(expected);
    for (let error: unknown = failure; error instanceof Error; error = error.cause) {
      const told = JSON.stringify([error, error.message, error.stack, Object.entries(error)]);
      expect(told).not.toContain(KEY);
      expect(told).not.toContain('PRIVATE');
      expect(told).not.toContain('<html>');
    }
  });

  it.each<[string, Respond, Partial<ModelChoice>]>([
    [
      'openai-compatible',
      streams([openAi.text('Half'), { error: { message: 'Overloaded' } }], { headers: { 'x-request-id': 'req_1' } }),
      {},
    ],
    [
      'anthropic',
      streams([anthropic.start(), { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } }], {
        headers: { 'request-id': 'req_1' },
      }),
      { provider: 'anthropic' },
    ],
  ])('reports the id of the request with an error in the stream of %s', async (_, respond, model) => {
    const { steps } = await stepWith(respond, model);
    expect((await failureOf(steps)).more.report).toMatchObject({ requestId: 'req_1', message: 'Overloaded' });
  });

  it('names a reset amid the stream, and a server that is not there', async () => {
    const { steps, provider } = await stepWith((response, request) => {
      streams([openAi.text('Half')], { end: false })(response, request);
      response.write('data: {"cho', () => response.destroy());
    });
    const reset = await failureOf(steps);
    expect(reset).toMatchObject({ code: 'provider_unavailable' });
    expect(String(reset.cause)).toContain('(UND_ERR_SOCKET)');
    const gone = provider.url;
    await provider.close();
    const again = testHarness(env).step(contextWith(manifestWith({ baseUrl: gone, apiKey })));
    expect(await failureOf(again)).toMatchObject({ code: 'provider_unavailable' });
  });

  it('reads no more of an error than it needs', async () => {
    const { steps, provider } = await stepWith((response) => {
      response.writeHead(500);
      const more = (): void => {
        while (!response.destroyed && response.write('x'.repeat(10_000)));
        if (!response.destroyed) response.once('drain', more);
      };
      more();
    });
    expect(await failureOf(steps)).toMatchObject({ code: 'provider_unavailable' });
    await eventually(() => provider.asked[0]?.cut, { what: 'its connection is closed' });
  });

  it('names a key that is gone, or that no header can have', async () => {
    const manifest = manifestWith({ apiKey });
    expect(await failureOf(testHarness().step(contextWith(manifest)))).toMatchObject({ code: 'provider_auth' });
    const broken = await failureOf(testHarness({ KEY: `${KEY}\nx` }).step(contextWith(manifest)));
    expect(broken).toMatchObject({ code: 'provider_auth' });
    expect(String(broken.cause)).not.toContain(KEY);
  });

  it.each<[string, Respond]>([
    ['before its headers', () => undefined],
    ['before its first piece', streams([], { end: false })],
    ['between two pieces', streams([openAi.text('Half')], { end: false })],
  ])('gives up a provider that is silent %s, and closes the connection', async (_, respond) => {
    // Long enough for the request to arrive first.
    const { steps, provider } = await stepWith(respond, { silenceMs: 800 });
    expect(await failureOf(steps)).toMatchObject({ code: 'provider_unavailable' });
    await eventually(() => provider.asked[0]?.cut, { what: 'its connection is closed' });
  });

  it('is not kept waiting by signs of life that say nothing', async () => {
    let timer: NodeJS.Timeout | undefined;
    const { steps } = await stepWith(
      (response, request) => {
        streams([anthropic.start()], { end: false })(response, request);
        timer = setInterval(() => response.write(`: keepalive\n\ndata: {"type": "ping"}\n\n`), 10);
      },
      { provider: 'anthropic', silenceMs: 100 },
    );
    expect(await failureOf(steps)).toMatchObject({ code: 'provider_unavailable' });
    clearInterval(timer);
  });
});

describe('a step that nobody wants any more', () => {
  it('closes its connection when its events are no longer taken', async () => {
    const { steps, provider } = await stepWith(streams([openAi.text('One'), openAi.text('Two')], { end: false }));
    for await (const event of steps) {
      expect(event).toEqual({ type: 'text', text: 'One' });
      break;
    }
    await eventually(() => provider.asked[0]?.cut, { what: 'its connection is closed' });
  });

  it('asks nobody once its signal has aborted', async () => {
    const { steps, provider } = await stepWith(streams([]), {}, { signal: AbortSignal.abort(new Error('stopped')) });
    await expect(eventsOf(steps)).rejects.toThrow('stopped');
    expect(provider.asked).toEqual([]);
  });

  it.each(['openai-compatible', 'anthropic'] as const)('throws the reason of its signal (%s)', async (name) => {
    for (const pieces of [null, name === 'anthropic' ? [anthropic.start()] : [openAi.text('Half')]]) {
      const stop = new AbortController();
      const respond: Respond = pieces === null ? () => undefined : streams(pieces, { end: false });
      const { steps, provider } = await stepWith(respond, { provider: name }, { signal: stop.signal });
      const done = eventsOf(steps);
      done.catch(() => undefined);
      await eventually(() => provider.asked.length === 1, { what: 'it is asked' });
      stop.abort(new Error('stopped'));
      await expect(done).rejects.toThrow('stopped');
      await eventually(() => provider.asked[0]?.cut, { what: 'its connection is closed' });
      await provider.close();
    }
  });
});

describe('an answer beyond what is left of the budget', () => {
  /** Sends ten characters at a time until the client disconnects. */
  const endless =
    (first: readonly object[], piece: object): Respond =>
    (response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      for (const each of first) response.write(`data: ${JSON.stringify(each)}\n\n`);
      const timer = setInterval(() => response.write(`data: ${JSON.stringify(piece)}\n\n`), 1);
      response.on('close', () => clearInterval(timer));
    };
  const anthropicText = { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'and so on ' } };
  const opened = [
    anthropic.start({ input_tokens: 70, cache_read_input_tokens: 7, output_tokens: 1 }),
    { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
  ];
  const call = (args: string) => openAi.delta({ tool_calls: [{ index: 0, function: { arguments: args } }] });

  it.each<[string, Respond, Partial<ModelChoice>]>([
    ['text', endless([], openAi.text('and so on ')), {}],
    ['thinking', endless([], openAi.delta({ reasoning_content: 'and so on ' })), {}],
    ['arguments', endless([openAi.call('write', '{"text": "')], call('and so on ')), {}],
    ['text of anthropic', endless(opened, anthropicText), { provider: 'anthropic' }],
  ])('is cut and its connection closed if the provider does not end it: %s', async (_what, respond, model) => {
    const { provider, steps } = await stepWith(respond, model, { tokensLeft: 100 });
    let told = '';
    const read = async (): Promise<void> => {
      for await (const event of steps) if (event.type === 'text') told += event.text;
    };
    const error: unknown = await read().catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: 'token_limit_reached' });
    const { usage } = (error as HarnessError).more;
    // Six bytes a token before it is cut, of which four are a token.
    expect(usage?.outputTokens).toBeGreaterThanOrEqual(150);
    expect(usage?.outputTokens).toBeLessThan(160);
    expect(told.length).toBeLessThanOrEqual(610);
    expect(usage?.inputTokens).toBe(model.provider === 'anthropic' ? 77 : 10);
    await eventually(() => provider.asked[0]?.cut, { what: 'the connection is closed' });
  });

  it('is cut at the usage that the provider reports meanwhile', async () => {
    const chunk = { ...openAi.text('x'), usage: { prompt_tokens: 40, completion_tokens: 101 } };
    const { steps } = await stepWith(endless([openAi.text('x')], chunk), {}, { tokensLeft: 100 });
    expect(await failureOf(steps)).toMatchObject({
      code: 'token_limit_reached',
      more: { usage: { inputTokens: 40, outputTokens: 101 } },
    });
  });

  it('fails if the provider ended it at the budget, but not if it ended at another limit', async () => {
    const ended = (outputTokens: number) =>
      streams([openAi.text('Half an'), openAi.finish('length'), openAi.usage(40, outputTokens)]);
    const { steps } = await stepWith(ended(100), {}, { tokensLeft: 100 });
    expect(await failureOf(steps)).toMatchObject({
      code: 'token_limit_reached',
      more: { usage: { inputTokens: 40, outputTokens: 100 } },
    });
    const other = await stepWith(ended(50), {}, { tokensLeft: 100 });
    expect((await eventsOf(other.steps)).at(-1)).toMatchObject({ type: 'message', text: 'Half an' });
  });

  it.each(['openai-compatible', 'anthropic'] as const)(
    'fails for its length only if the limit that was sent is what is left (%s)',
    async (provider) => {
      const settings = { maxOutputTokens: 1_000 };
      const finished = [openAi.text('Half an'), openAi.finish('length'), openAi.usage(40, 1_000)];
      const message = [...opened, anthropicText, ...anthropic.end('max_tokens', { output_tokens: 1_000 })];
      const ended = streams(provider === 'anthropic' ? message : finished);
      for (const tokensLeft of [1_001, 1_100]) {
        const { steps } = await stepWith(ended, { provider, settings }, { tokensLeft });
        expect((await eventsOf(steps)).at(-1)).toMatchObject({ type: 'message' });
      }
      const spent = await stepWith(ended, { provider, settings }, { tokensLeft: 1_000 });
      expect(await failureOf(spent.steps)).toMatchObject({ code: 'token_limit_reached' });
    },
  );

  it('is a normal answer if it ends by itself', async () => {
    const text = 'x'.repeat(600);
    const answers = streams([openAi.text(text), openAi.finish('stop'), openAi.usage(40, 120)]);
    const { steps } = await stepWith(answers, {}, { tokensLeft: 100 });
    expect((await eventsOf(steps)).at(-1)).toMatchObject({ type: 'message', text });
    const ended = [...opened, anthropicText, ...anthropic.end('end_turn', { output_tokens: 120 })];
    const other = await stepWith(streams(ended), { provider: 'anthropic' }, { tokensLeft: 100 });
    expect((await eventsOf(other.steps)).at(-1)).toMatchObject({ type: 'message', text: 'and so on ' });
  });
});
