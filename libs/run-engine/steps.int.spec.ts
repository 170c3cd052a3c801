import { once } from 'node:events';
import { rename, rm, writeFile } from 'node:fs/promises';
import { HarnessError, type StepContext, type StepEvent, type TranscriptMessage } from '#agents';
import { createLogger } from '#platform';
import { eventually } from '#testing';
import { makeWorld, type World } from './engine.testing.ts';
import { gate, message, ok, scripted, scriptedHarness, tool, useTools } from './scripted-harness.testing.ts';

let world: World;
beforeAll(async () => {
  world = await makeWorld();
});
afterAll(() => world.close());

async function execute(
  step: (context: StepContext) => AsyncIterable<StepEvent>,
  tools: ReturnType<typeof tool>[] = [],
) {
  const { engine } = await world.makeWorker({ harnesses: [scriptedHarness(step, tools)] });
  const said = await world.say('x', scripted);
  await engine.executeJob(said.job);
  return said;
}

const errorOf = async (runId: string) => (await world.summary(runId)).error;

describe('a model step', () => {
  it('may output text that PostgreSQL cannot store', async () => {
    const [high, low] = ['😀'.slice(0, 1), '😀'.slice(1)];
    const said = ['nul\0 ', high, `${low} lone `, low];
    const { threadId, runId } = await execute(async function* () {
      for (const text of said) yield { type: 'text', text };
      yield message(said.join(''));
    });
    expect((await world.summary(runId)).final_output?.text).toBe('nul 😀 lone \uFFFD');
    const log = await world.log(threadId);
    const deltas = log.flatMap(({ type, content }) => (type === 'agent.message.delta' ? [content] : []));
    expect(deltas.join('')).toBe('nul 😀 lone \uFFFD');
  });

  it('has no citations in its thinking, and keeps text that only begins like one', async () => {
    const { threadId } = await execute(async function* () {
      for (const text of ['so \u{E200}ci', 'te\u{E202}x\u{E201}', 'then \u{E200}cit']) yield { type: 'thinking', text };
      yield message('done');
    });
    const thinking = (await world.log(threadId)).filter(({ type }) => type === 'agent.thinking.delta');
    expect(thinking.map(({ content }) => content).join('')).toBe('so then \u{E200}cit');
  });

  it('that does not stream stores its message as one delta', async () => {
    const { threadId } = await execute(async function* () {
      yield message('the whole message');
    });
    const log = await world.log(threadId);
    expect(log.filter(({ type }) => type === 'agent.message.delta')).toMatchObject([{ content: 'the whole message' }]);
  });

  it.each<[string, () => AsyncGenerator<StepEvent>]>([
    [
      'throws',
      async function* () {
        yield { type: 'text', text: 'secret' };
        throw new Error('at /home/secret/path');
      },
    ],
    ['ends without a message', async function* () {}],
    [
      'has a message that differs from its deltas',
      async function* () {
        yield { type: 'text', text: 'yes' };
        yield message('no');
      },
    ],
  ])('that %s is a crash of the harness, and is retried', async (_what, step) => {
    const { threadId, runId } = await execute(step);
    expect(await world.run(threadId, runId)).toMatchObject({ status: 'queued', streak: { of: 'other', failures: 1 } });
    const { engine } = await world.makeWorker({ harnesses: [scriptedHarness(step)] });
    for (const dispatch of [2, 3]) await engine.executeJob({ threadId, runId, dispatch });
    const message = 'The agent’s harness ended unexpectedly.';
    expect(await errorOf(runId)).toEqual({ code: 'harness_crashed', message, retryable: true });
  });

  it('that throws logs the cause with the run id', async () => {
    const lines: Record<string, unknown>[] = [];
    const write = (line: string): void => void lines.push(JSON.parse(line) as Record<string, unknown>);
    const step = async function* () {
      yield { type: 'text' as const, text: 'yes' };
      throw new Error('what broke');
    };
    const logger = createLogger('info', 'steps spec', { write });
    const { engine } = await world.makeWorker({ harnesses: [scriptedHarness(step)], logger });
    const { threadId, runId, job } = await world.say('x', scripted);
    await engine.executeJob(job);
    const failures = lines.filter(({ msg }) => msg === 'run attempt failed');
    expect(failures).toMatchObject([{ level: 'warn', threadId, runId, attempt: 1 }]);
    expect(JSON.stringify(failures[0]!['err'])).toContain('what broke');
  });

  it('with too much output fails the Run', async () => {
    const { runId } = await execute(async function* () {
      for (;;) yield { type: 'text', text: 'x'.repeat(100_000) };
    });
    expect(await errorOf(runId)).toMatchObject({ code: 'output_too_large' });
  });

  it('with more than 1,000 calls fails the Run', async () => {
    const { runId } = await execute(async function* () {
      const toolCalls = Array.from({ length: 1_001 }, () => ({ toolName: 'missing', toolInput: {} }));
      yield { type: 'message', text: '', toolCalls };
    });
    expect(await errorOf(runId)).toMatchObject({ code: 'output_too_large' });
  });
});

describe('a tool call', () => {
  it('has a new id, the user, and input that can be stored and shown', async () => {
    const citation = '\u{E200}cite\u{E202}x\u{E201}';
    const seen: unknown[] = [];
    const look = tool('look', async ({ userId, toolCallId }) => {
      seen.push({ userId, toolCallId });
      return ok('seen');
    });
    const { threadId } = await execute(
      async function* ({ transcript }) {
        if (transcript.some(({ role }) => role === 'tool')) {
          yield message('done');
          return;
        }
        yield {
          type: 'message',
          text: '',
          toolCalls: [{ toolName: 'look', toolInput: { 'a\0': [`b${citation}`, '\0'] } }],
        };
      },
      [look],
    );
    const started = (await world.log(threadId)).find(({ type }) => type === 'tool.use.started');
    expect(started).toMatchObject({
      toolInput: { a: ['b', ''] },
      toolCallId: expect.stringMatching(/^[0-9A-Z]{26}$/) as string,
    });
    expect(seen).toEqual([{ userId: 'user-1', toolCallId: started?.toolCallId }]);
  });

  it('with too large a result gives the model a cut one, and the log shows the beginning', async () => {
    let given: TranscriptMessage | undefined;
    const { threadId, runId } = await execute(
      async function* ({ transcript }) {
        given = transcript.find(({ role }) => role === 'tool');
        yield given ? message('done') : message('', 'big');
      },
      [tool('big', async () => ok(`ä\0${'ä'.repeat(2 * 1024 * 1024)}`))],
    );
    expect((await world.summary(runId)).status).toBe('completed');
    const result = given?.role === 'tool' ? given.result : '';
    expect(Buffer.byteLength(result)).toBeLessThanOrEqual(1024 * 1024);
    expect(result).toMatch(/ä\n\[The rest of the result was cut off/);
    const { content = '' } = (await world.log(threadId)).find(({ type }) => type === 'tool.use.completed') ?? {};
    expect(Buffer.byteLength(content)).toBeLessThanOrEqual(2048);
    expect(content).toMatch(/ä…$/);
  });

  it('that throws gives the model an error without its cause', async () => {
    const fails = tool('fails', async () => Promise.reject(new Error('password is 123')));
    const { threadId, runId } = await execute(useTools(['fails']), [fails]);
    expect((await world.summary(runId)).status).toBe('completed');
    const completed = (await world.log(threadId)).find(({ type }) => type === 'tool.use.completed');
    expect(completed).toMatchObject({ status: 'error', content: 'The tool failed.' });
    const [event] = (await world.stream(threadId)).filter(({ type }) => type === 'tool.completed');
    const cause = { source: 'worker', type: 'Error', message: 'password is 123' };
    expect(event).toMatchObject({ data: { outcome: 'error', cause } });
  });

  it('whose server fails has the report of the server', async () => {
    const report = { source: 'tool_server', name: 'files', code: 'ECONNREFUSED' } as const;
    const fails = tool('fails', () => Promise.reject(new HarnessError('tool_server_unavailable', { report })));
    const { threadId } = await execute(useTools(['fails']), [fails]);
    const [event] = (await world.stream(threadId)).filter(({ type }) => type === 'tool.completed');
    expect(event).toMatchObject({ data: { outcome: 'error', cause: report } });
  });

  it.each([
    ['in time completes the Run', 2, { status: 'completed', error: null }],
    ['too late fails it', 3, { status: 'failed', error: { code: 'storage_unavailable', retryable: true } }],
  ])('whose artifact cannot be stored is retried: a storage that is available again %s', async (_, failures, end) => {
    const bytes = new TextEncoder().encode('a');
    const makes = tool(
      'makes',
      async ({ saveArtifact }) => ok((await saveArtifact({ name: 'a.txt', mimeType: 'text/plain', bytes })).fileId),
      { idempotent: true },
    );
    // A file in place of the store's folder makes every put fail.
    await rename(world.folder, `${world.folder}.moved`);
    await writeFile(world.folder, '');
    const { threadId, runId } = await execute(useTools(['makes']), [makes]);
    const { engine } = await world.makeWorker({ harnesses: [scriptedHarness(useTools(['makes']), [makes])] });
    for (let failed = 1; failed < failures; failed++) {
      expect(await world.run(threadId, runId)).toMatchObject({ status: 'queued', streak: { failures: failed } });
      await engine.executeJob({ threadId, runId, dispatch: failed + 1 });
    }
    await rm(world.folder);
    await rename(`${world.folder}.moved`, world.folder);
    await engine.executeJob({ threadId, runId, dispatch: failures + 1 });
    expect(await world.summary(runId)).toMatchObject(end);
    const log = await world.log(threadId);
    const isStored = end.status === 'completed';
    expect(log.filter(({ type }) => type === 'file.changed')).toHaveLength(isStored ? 1 : 0);
    expect(log.filter(({ type }) => type === 'tool.use.completed')).toHaveLength(isStored ? 1 : 0);
  });

  it('may give an artifact a type that PostgreSQL cannot store', async () => {
    const bytes = new TextEncoder().encode('a');
    const makes = tool('makes', async ({ saveArtifact }) =>
      ok((await saveArtifact({ name: 'a', mimeType: 'image/\0', bytes })).fileId),
    );
    const { threadId, runId } = await execute(useTools(['makes']), [makes]);
    expect((await world.summary(runId)).status).toBe('completed');
    const completed = (await world.log(threadId)).find(({ type }) => type === 'tool.use.completed');
    expect(completed).toMatchObject({ status: 'available' });
  });

  it('to a tool that does not exist gives an error without a start', async () => {
    const { threadId } = await execute(useTools(['nowhere']));
    const tools = (await world.log(threadId)).filter(({ type }) => type.startsWith('tool.'));
    expect(tools).toMatchObject([{ type: 'tool.use.completed', status: 'error', toolName: 'nowhere' }]);
  });
});

it('a request for permission says that its tool is destructive', async () => {
  const tools = [
    tool('drop', async () => ok('dropped'), { policy: 'ask', destructive: true }),
    tool('send', async () => ok('sent'), { policy: 'ask' }),
  ];
  const { threadId } = await execute(useTools(['drop', 'send']), tools);
  const requests = (await world.stream(threadId)).filter(({ type }) => type === 'tool.confirmation_requested');
  expect(requests.map(({ data }) => [data, 'destructive' in data])).toMatchObject([
    [{ toolName: 'drop', destructive: true }, true],
    [{ toolName: 'send' }, false],
  ]);
});

describe('invalid tool input', () => {
  const schema = { type: 'object', properties: { to: { type: 'string' } }, required: ['to'] };
  const pays = (ran: jest.Mock) => tool('pay', async () => ok(String(ran())), { inputSchema: schema, policy: 'ask' });

  it.each([
    ['that is not an object', { toolInput: {}, invalidInput: '{"to":' }, /must be a JSON object.*begins: \{"to":$/],
    [
      'that does not match the schema',
      { toolInput: { to: 1 } },
      /does not match the schema of the tool pay:\n- \/to must be string$/,
    ],
  ])('%s gives the model an error, requests no permission and starts no call', async (_what, requested, told) => {
    const ran = jest.fn();
    let result = '';
    const { threadId, runId } = await execute(
      async function* ({ transcript }) {
        const answer = transcript.find(({ role }) => role === 'tool');
        if (answer?.role === 'tool') result = answer.result;
        yield answer ? message('done') : { type: 'message', text: '', toolCalls: [{ toolName: 'pay', ...requested }] };
      },
      [pays(ran)],
    );
    expect((await world.summary(runId)).status).toBe('completed');
    expect(result).toMatch(told);
    expect(ran).not.toHaveBeenCalled();
    const events = (await world.types(threadId)).filter((type) => type.startsWith('tool.'));
    expect(events).toEqual(['tool.completed']);
  });
});

describe('a budget', () => {
  it.each([
    ['tokens', { maxTokens: 25 }, 'token_limit_reached'],
    ['costs', { maxCost: 0.00005 }, 'cost_limit_reached'],
  ])('of %s ends the Run before the step that would exceed it', async (_what, limits, code) => {
    let steps = 0;
    const step = async function* (): AsyncGenerator<StepEvent> {
      steps += 1;
      yield { type: 'usage', inputTokens: 10, outputTokens: 5 };
      yield message('', 'look');
    };
    const { engine } = await world.makeWorker({
      harnesses: [scriptedHarness(step, [tool('look', async () => ok('seen'))])],
    });
    const model = { provider: 'anthropic' as const, name: 'any', prices: { input: 1, output: 4 } };
    const { runId, job } = await world.say('x', { ...scripted, model, limits });
    await engine.executeJob(job);
    expect(await errorOf(runId)).toMatchObject({ code, retryable: false });
    expect(steps).toBe(2);
  });
});

describe('a message that is cut at the budget', () => {
  it('ends the Run and is stored with its usage; its step got the rest of the budget', async () => {
    const left: (number | undefined)[] = [];
    const step = async function* ({ tokensLeft, transcript }: StepContext): AsyncGenerator<StepEvent> {
      left.push(tokensLeft);
      yield { type: 'usage', inputTokens: 10, outputTokens: 5 };
      if (!transcript.some(({ role }) => role === 'tool')) {
        yield message('', 'look');
        return;
      }
      yield { type: 'text', text: 'On and ' };
      yield { type: 'text', text: 'on' };
      throw new HarnessError('token_limit_reached', { usage: { inputTokens: 20, outputTokens: 11 } });
    };
    const { engine } = await world.makeWorker({
      harnesses: [scriptedHarness(step, [tool('look', async () => ok('seen'))])],
    });
    const { threadId, runId, job } = await world.say('x', { ...scripted, limits: { maxTokens: 25 } });
    await engine.executeJob(job);
    expect(left).toEqual([25, 10]);
    expect(await errorOf(runId)).toMatchObject({ code: 'token_limit_reached', retryable: false });
    const log = await world.log(threadId);
    const said = log.flatMap(({ type, content }) => (type === 'agent.message.delta' ? [content] : []));
    expect(said.join('')).toBe('On and on');
    expect(log.flatMap(({ tokens }) => tokens ?? [])).toEqual([15, 31]);
    expect((await world.types(threadId)).filter((type) => type === 'assistant.message_added')).toHaveLength(1);
  });
});

describe('calls that only read', () => {
  const reading = { readOnly: true, idempotent: true };

  it('run at the same time, and each result is stored as it comes', async () => {
    const [slow, quick] = [gate(), gate()];
    const tools = [
      tool('slow', async () => slow.pass().then(() => ok('slow')), reading),
      tool('quick', async () => quick.pass().then(() => ok('quick')), reading),
    ];
    const { engine } = await world.makeWorker({ harnesses: [scriptedHarness(useTools(['slow', 'quick']), tools)] });
    const { threadId, runId, job } = await world.say('x', scripted);
    const executed = engine.executeJob(job);
    await Promise.all([slow.reached, quick.reached]);
    quick.open();
    const names = async (type: string) =>
      (await world.log(threadId)).flatMap((entry) => (entry.type === type ? [entry.toolName] : []));
    await eventually(async () => (await names('tool.use.completed')).length > 0, { what: 'one result is stored' });
    expect(await names('tool.use.completed')).toEqual(['quick']);
    slow.open();
    await executed;
    expect(await names('tool.use.started')).toEqual(['slow', 'quick']);
    expect(await names('tool.use.completed')).toEqual(['quick', 'slow']);
    expect((await world.summary(runId)).status).toBe('completed');
  });

  it('end together if one cannot continue: stored results stay, the other calls are repeated', async () => {
    const runs: string[] = [];
    let isUnavailable = true;
    let wasCutOff = false;
    const isStored = async (threadId: string) => (await world.types(threadId)).includes('tool.completed');
    const bytes = new TextEncoder().encode('a');
    const tools = [
      tool('quick', async () => (runs.push('quick'), ok('quick')), reading),
      tool(
        'hangs',
        async ({ signal }) => {
          runs.push('hangs');
          if (isUnavailable) await once(signal, 'abort');
          wasCutOff ||= isUnavailable;
          return ok('late');
        },
        reading,
      ),
      tool(
        'makes',
        async ({ threadId, saveArtifact }) => {
          runs.push('makes');
          await eventually(() => isStored(threadId), { what: 'another result is stored' });
          return ok((await saveArtifact({ name: 'a.txt', mimeType: 'text/plain', bytes })).fileId);
        },
        reading,
      ),
    ];
    const moved = `${world.folder}.moved`;
    await rename(world.folder, moved);
    await writeFile(world.folder, '');
    const harnesses = [scriptedHarness(useTools(['quick', 'hangs', 'makes']), tools)];
    const { engine } = await world.makeWorker({ harnesses });
    const { threadId, runId, job } = await world.say('x', scripted);
    await engine.executeJob(job);
    expect(await world.run(threadId, runId)).toMatchObject({ status: 'queued', streak: { of: 'other', failures: 1 } });
    expect(wasCutOff).toBe(true);
    await rm(world.folder);
    await rename(moved, world.folder);
    isUnavailable = false;
    await engine.executeJob({ threadId, runId, dispatch: 2 });
    expect((await world.summary(runId)).status).toBe('completed');
    expect(runs).toEqual(['quick', 'hangs', 'makes', 'hangs', 'makes']);
    const types = await world.types(threadId);
    expect(types.filter((type) => type === 'tool.started')).toHaveLength(3);
    expect(types.filter((type) => type === 'tool.completed')).toHaveLength(3);
  });

  it('stop together when the Run is interrupted', async () => {
    const stopped: string[] = [];
    const reached = ['a', 'b'].map(() => gate());
    const tools = ['a', 'b'].map((name, i) =>
      tool(
        name,
        async ({ signal }) => {
          void reached[i]!.pass();
          await once(signal, 'abort');
          stopped.push(name);
          return ok('late');
        },
        reading,
      ),
    );
    const { engine } = await world.makeWorker({ harnesses: [scriptedHarness(useTools(['a', 'b']), tools)] });
    const { threadId, runId, job } = await world.say('x', scripted);
    const executed = engine.executeJob(job);
    await Promise.all(reached.map((each) => each.reached));
    await world.handle(threadId, { type: 'interrupt', runId, by: null });
    engine.wake(threadId, 1_000);
    await executed;
    await eventually(() => stopped.length === 2, { what: 'both calls have stopped' });
    expect((await world.summary(runId)).status).toBe('cancelled');
    expect(await world.types(threadId)).not.toContain('tool.completed');
  });
});
