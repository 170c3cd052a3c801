import { NoRoom, type StepContext } from '../harness.ts';
import {
  anthropic,
  apiKey,
  bytesOf,
  contextWith,
  env,
  eventsOf,
  filesOf,
  KEY,
  manifestWith,
  openAi,
  stepsAndProviders,
  streams,
  testHarness,
} from './provider.testing.ts';

const { start, stepWith } = stepsAndProviders();

describe('a step with an openai-compatible provider', () => {
  it('tells text and thinking as they come, then usage once, then the message', async () => {
    const { steps, provider } = await stepWith(
      streams([
        openAi.delta({ reasoning_content: 'Hm. ' }),
        openAi.text('Hello '),
        openAi.text('there.'),
        openAi.finish('stop'),
        openAi.usage(100, 7, 60),
      ]),
    );
    const events = await eventsOf(steps);
    expect(events.slice(0, -1)).toEqual([
      { type: 'thinking', text: 'Hm. ' },
      { type: 'text', text: 'Hello ' },
      { type: 'text', text: 'there.' },
      { type: 'usage', inputTokens: 100, outputTokens: 7, cachedInputTokens: 60 },
    ]);
    expect(events.at(-1)).toMatchObject({
      ...{ type: 'message', text: 'Hello there.', toolCalls: [] },
      continuation: { reasoning: { field: 'reasoning_content', text: 'Hm. ' } },
    });
    expect(provider.asked).toHaveLength(1);
    expect(provider.asked[0]).toMatchObject({
      url: '/v1/chat/completions',
      headers: { authorization: `Bearer ${KEY}` },
      body: { model: 'm-1', stream: true, stream_options: { include_usage: true } },
    });
  });

  it('passes calls on with the names that the model gave them, and what is no object as it was written', async () => {
    const { steps } = await stepWith(
      streams([
        openAi.call('invented', '{"a": 1}', 0),
        openAi.call('none', '', 1),
        openAi.call('broken', '{"a": ', 2),
        openAi.call('list', '[1]', 3),
        openAi.call('long', `"${'€'.repeat(2_000)}"`, 4),
        openAi.finish('tool_calls'),
      ]),
    );
    const message = (await eventsOf(steps)).at(-1);
    expect(message).toMatchObject({
      toolCalls: [
        { toolName: 'invented', toolInput: { a: 1 } },
        { toolName: 'none', toolInput: {} },
        { toolName: 'broken', toolInput: {}, invalidInput: '{"a": ' },
        { toolName: 'list', toolInput: {}, invalidInput: '[1]' },
        { toolName: 'long', toolInput: {}, invalidInput: `"${'€'.repeat(1_365)}` },
      ],
    });
  });

  it('estimates usage where the provider says nothing of it', async () => {
    const { steps } = await stepWith(
      streams([
        openAi.delta({ reasoning_content: 'y'.repeat(20) }),
        openAi.text('x'.repeat(40)),
        openAi.finish('stop'),
      ]),
    );
    const usage = (await eventsOf(steps)).filter(({ type }) => type === 'usage');
    expect(usage).toEqual([{ type: 'usage', inputTokens: 10, outputTokens: 15 }]);
  });

  it('works without a key', async () => {
    const provider = await start(streams([openAi.text('Yes'), openAi.finish('stop')]));
    const steps = testHarness().step(contextWith(manifestWith({ baseUrl: provider.url })));
    expect((await eventsOf(steps)).at(-1)).toMatchObject({ text: 'Yes' });
    expect(provider.asked[0]?.headers).not.toHaveProperty('authorization');
  });

  it('takes an answer that says nothing for an empty message', async () => {
    const { steps } = await stepWith(streams([openAi.finish('stop'), openAi.usage(5, 0)]));
    expect((await eventsOf(steps)).at(-1)).toMatchObject({ type: 'message', text: '', toolCalls: [] });
  });

  it('tells of tools, files and images', async () => {
    const image = { fileId: 'IMAGE', path: 'attachments/a.png', mimeType: 'image/png', size: 5, readOnly: true };
    const table = { fileId: 'TABLE', path: 'attachments/a.csv', mimeType: 'text/csv', size: 1_234, readOnly: true };
    const inputSchema = { type: 'object', properties: { path: { type: 'string' } } };
    const read = { title: 'Read', policy: 'allow' as const, idempotent: true, inputSchema };
    const execute = () => Promise.reject(new Error('not here'));
    const { steps, provider } = await stepWith(
      streams([openAi.text('I see'), openAi.finish('stop')]),
      { images: true },
      {
        transcript: [{ role: 'user', text: 'Look', fileIds: ['IMAGE'] }],
        tools: [{ ...read, name: 'read_file', description: 'Reads.', execute }],
        files: filesOf([image, table]),
      },
    );
    await eventsOf(steps);
    const data = bytesOf('IMAGE').toString('base64');
    const lines = [
      'Look',
      'Attached file: attachments/a.png (image/png, 5 bytes)',
      'Attached file: attachments/a.csv (text/csv, 1,234 bytes)',
    ];
    expect(provider.asked[0]?.body).toMatchObject({
      tools: [{ type: 'function', function: { name: 'read_file', description: 'Reads.', parameters: inputSchema } }],
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: lines.join('\n') },
            { type: 'image_url', image_url: { url: `data:image/gif;base64,${data}` } },
          ],
        },
      ],
    });
  });

  it('makes room for its images before it reads them, and asks nobody if there is none', async () => {
    const image = { fileId: 'IMAGE', path: 'attachments/a.png', mimeType: 'image/png', size: 1_000, readOnly: true };
    const asked: number[] = [];
    const makeRoom = (bytes: number): void => {
      asked.push(bytes);
      throw new NoRoom(bytes);
    };
    const read = jest.fn();
    const { steps, provider } = await stepWith(
      streams([openAi.text('I see'), openAi.finish('stop')]),
      { images: true },
      {
        transcript: [{ role: 'user', text: 'Look', fileIds: ['IMAGE'] }],
        files: { ...filesOf([image]), read },
        makeRoom,
      },
    );
    await expect(eventsOf(steps)).rejects.toThrow(NoRoom);
    expect(asked).toEqual([5_000]);
    expect(read).not.toHaveBeenCalled();
    expect(provider.asked).toEqual([]);
  });

  it('leaves out what does not fit, and goes by what the last step used', async () => {
    const provider = await start(streams([openAi.text('Yes'), openAi.finish('stop')]));
    const manifest = { contextTokens: 1_600 };
    const result = 'x'.repeat(2_000);
    const continuation = (estimatedTokens: number) => ({
      ...{ harness: 'model', version: 1, provider: 'openai-compatible', model: 'm-1' },
      ...{ baseUrl: provider.url, estimatedTokens, blocks: [] },
    });
    const call = { toolCallId: 'CALL', toolName: 'look', title: 'Look', toolInput: {} };
    for (const estimatedTokens of [1_000, 250]) {
      const transcript: StepContext['transcript'] = [
        { role: 'user', text: 'Look', fileIds: [] },
        { role: 'assistant', text: '', toolCalls: [call] },
        { role: 'tool', toolCallId: 'CALL', toolName: 'look', outcome: 'ok', result },
        {
          ...{ role: 'assistant', text: 'Seen', toolCalls: [], usage: { inputTokens: 1_000, outputTokens: 1 } },
          continuation: continuation(estimatedTokens),
        },
        { role: 'user', text: 'And?', fileIds: [] },
      ];
      const context = contextWith(manifestWith({ baseUrl: provider.url, ...manifest }), { transcript });
      await eventsOf(testHarness().step(context));
    }
    const [all, less] = provider.asked.map(({ body }) => JSON.stringify(body));
    expect(all).toContain(result);
    expect(less).not.toContain(result);
    expect(less).toContain('This result was left out');
  });
});

describe('a step with anthropic', () => {
  const model = { provider: 'anthropic' as const };

  it('counts usage once, though the provider tells of it twice', async () => {
    const { steps, provider } = await stepWith(
      streams([
        anthropic.start({ input_tokens: 10, output_tokens: 1, cache_read_input_tokens: 90 }),
        { type: 'ping' },
        ...anthropic.text(0, 'Hello.'),
        ...anthropic.end('end_turn'),
      ]),
      model,
    );
    expect(await eventsOf(steps)).toMatchObject([
      { type: 'text', text: 'Hello.' },
      { type: 'usage', inputTokens: 100, outputTokens: 20, cachedInputTokens: 90 },
      { type: 'message', text: 'Hello.' },
    ]);
    expect(provider.asked[0]).toMatchObject({
      url: '/v1/messages',
      headers: { 'x-api-key': KEY },
      body: { max_tokens: 8_000, thinking: { type: 'disabled' } },
    });
  });

  it('gives thoughts back with their signatures, before the call that they led to', async () => {
    const settings = { thinkingTokens: 1_024, maxOutputTokens: 4_000 };
    const first = await stepWith(
      streams([
        anthropic.start(),
        ...anthropic.thinking(0, 'I have to look.', 'signed'),
        ...anthropic.block(1, { type: 'redacted_thinking', data: 'hidden' }, []),
        ...anthropic.text(2, 'I look.'),
        ...anthropic.call(3, 'look', '{"at": "it"}'),
        ...anthropic.end('tool_use'),
      ]),
      { ...model, settings },
    );
    const message = (await eventsOf(first.steps)).at(-1);
    expect(first.provider.asked[0]?.body).toMatchObject({
      max_tokens: 4_000,
      thinking: { type: 'enabled', budget_tokens: 1_024 },
    });
    if (message?.type !== 'message') throw new Error('There is no message.');
    const toolCalls = message.toolCalls.map((call) => ({ ...call, toolCallId: 'CALL', title: 'Look' }));
    // As it is after having been stored.
    const continuation: unknown = JSON.parse(JSON.stringify(message.continuation));
    const transcript: StepContext['transcript'] = [
      { role: 'user', text: 'Look!', fileIds: [] },
      { role: 'assistant', text: message.text, toolCalls, continuation },
      { role: 'tool', toolCallId: 'CALL', toolName: 'look', outcome: 'ok', result: 'seen' },
    ];
    const { url } = first.provider;
    const manifest = manifestWith({ ...model, baseUrl: url, apiKey, settings });
    await eventsOf(testHarness(env).step(contextWith(manifest, { transcript })));
    const { body } = first.provider.asked[1] ?? {};
    expect(body).toMatchObject({ thinking: { type: 'enabled' } });
    expect((body?.messages as unknown[])[1]).toEqual({
      role: 'assistant',
      content: [
        { type: 'thinking', thinking: 'I have to look.', signature: 'signed' },
        { type: 'redacted_thinking', data: 'hidden' },
        { type: 'text', text: 'I look.' },
        { type: 'tool_use', id: 'CALL', name: 'look', input: { at: 'it' } },
      ],
    });

    // Another model knows nothing of these thoughts, and must not think in a turn that has begun without.
    const other = manifestWith({ ...model, name: 'm-2', baseUrl: url, apiKey, settings });
    await eventsOf(testHarness(env).step(contextWith(other, { transcript })));
    const told = first.provider.asked[2]?.body;
    expect(told).toMatchObject({ thinking: { type: 'disabled' } });
    expect(JSON.stringify(told)).not.toContain('signed');
  });
});
