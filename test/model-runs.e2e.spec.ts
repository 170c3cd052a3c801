import type { AgentManifestInput } from '#agents';
import { findFreePort } from '#platform';
import { eventually, isNight, type SpawnedNode } from '#testing';
import { expectHealthy, lastMessage } from './support/checks.ts';
import {
  createAcknowledged,
  follow,
  postEvents,
  readLog,
  send,
  waitForEntry,
  type Caller,
  type LogEntry,
} from './support/client.ts';
import { operatorOf } from './support/operator.ts';
import {
  ask,
  endOf,
  PROTOCOLS,
  startModelSystem,
  usagesOf,
  type ModelSystem,
  type ProtocolName,
} from './support/model-system.ts';
import {
  isRunning,
  everything,
  everythingOverHttp,
  oddServer,
  type ListeningServer,
  type ToolServerInput,
} from './support/tool-servers.ts';

type Entry = LogEntry & { toolName?: string; durationMs: number | null; tokens: number | null };

/** Of an agent that thinks as its protocol says. */
const THINKS: Record<ProtocolName, NonNullable<AgentManifestInput['model']>['settings']> = {
  'openai-compatible': { reasoningEffort: 'low' },
  anthropic: { maxOutputTokens: 8_000, thinkingTokens: 2_000 },
};
/** Long enough for a machine that is busy with much else. */
const LEASE_MS = 4_000;
const ALLOW_ALL = [{ pattern: '*', policy: 'allow' }] as const;

let models: ModelSystem;
let web: ToolServerInput;
let listening: ListeningServer;
let worker: SpawnedNode;

beforeAll(async () => {
  listening = await everythingOverHttp();
  web = { name: 'web', url: listening.url };
  models = await startModelSystem({ env: { LEASE_MS: String(LEASE_MS) } });
  worker = models.worker;
}, 120_000);

afterAll(async () => {
  await models.stop();
  await listening.close();
});

// Whatever a test does: all that was asked is what the providers would have taken too.
afterEach(async () => {
  const refusals = models.provider.requests.splice(0).flatMap(({ refusal }) => refusal ?? []);
  expect(refusals).toEqual([]);
  await expectHealthy(models.system.database);
});

const say = async (caller: Caller, threadId: string, text: string): Promise<void> =>
  void expect((await postEvents(caller, threadId, { type: 'user_message', text })).status).toBe(200);

const ofTools = (log: readonly LogEntry[]): Entry[] => log.filter(({ type }) => type.startsWith('tool.')) as Entry[];
const joined = (log: readonly LogEntry[], type: string): string =>
  log
    .filter((entry) => entry.type === type)
    .map(({ content }) => content)
    .join('');

/** The texts that a request holds, wherever they stand in it. */
const bodyOf = (request: { body: unknown } | undefined): string => JSON.stringify(request?.body);

async function interrupt(caller: Caller, threadId: string): Promise<void> {
  expect((await postEvents(caller, threadId, { type: 'user_interrupt' })).status).toBe(200);
  expect((await endOf(caller, threadId)).status).toBe('cancelled');
}

describe.each(PROTOCOLS)('an agent whose model speaks %s', (protocol) => {
  const lineOf = (script: string): string => `script: ${script} by ${protocol}`;

  it('thinks, calls tools of two servers at once, and answers, with the whole conversation in its next Run', async () => {
    const caller = await models.publish(protocol, {
      model: { settings: THINKS[protocol] },
      toolServers: [everything, web],
    });
    const { threadId } = await createAcknowledged(caller, lineOf('tour'));
    const read = await follow([caller], threadId);
    const run = await endOf(caller, threadId);
    const log = await readLog(caller, threadId);
    expect(read).toEqual(log);

    expect(run).toMatchObject({ status: 'completed', error: null });
    expect(run.finalOutput).toEqual({
      text: 'It is 42 and 5.',
      warnings: [{ code: 'unresolved_provider_citation', count: 2 }],
    });
    expect(joined(log, 'agent.message.delta')).toBe('One moment.It is 42 and 5.');
    expect(joined(log, 'agent.thinking.delta')).toBe('I had better ask all of them.One more.');
    expect(usagesOf(log)).toEqual([
      { inputTokens: 100, outputTokens: 40 },
      { inputTokens: 200, outputTokens: 15 },
      { inputTokens: 300, outputTokens: 12 },
    ]);
    expect((log as Entry[]).flatMap(({ tokens }) => tokens ?? [])).toEqual([140, 215, 312]);
    expectToolsTold(log);

    await say(caller, threadId, lineOf('hello'));
    expect((await endOf(caller, threadId)).finalOutput).toEqual({ text: 'Hello, I am here.', warnings: [] });
    const [next] = models.requestsOf(lineOf('hello'));
    for (const said of [lineOf('tour'), 'One moment.', 'over HTTP', '42', lineOf('hello')])
      expect(bodyOf(next)).toContain(said);
    // Only Anthropic wants thoughts back: the provider has looked at their signatures.
    expect(bodyOf(next).includes('I had better ask')).toBe(protocol === 'anthropic');
    expect(bodyOf(models.requestsOf(lineOf('tour'))[1]).includes('signature')).toBe(protocol === 'anthropic');
  });

  /** Three that run at once, then one: started together before any has ended, each with its result. */
  function expectToolsTold(log: readonly LogEntry[]): void {
    const entries = ofTools(log);
    const told = entries.map(({ type, toolName }) => `${type.slice('tool.use.'.length)} ${toolName}`);
    const [first, second] = [['everything__echo', 'web__echo', 'web__get-sum'], ['everything__get-sum']];
    expect(told.slice(0, 3)).toEqual(first.map((name) => `started ${name}`));
    expect(told.slice(3, 6).toSorted()).toEqual(first.map((name) => `completed ${name}`));
    expect(told.slice(6)).toEqual(second.flatMap((name) => [`started ${name}`, `completed ${name}`]));
    const started = entries.filter(({ type }) => type === 'tool.use.started');
    const results = started.map(({ toolCallId }) =>
      entries.find((entry) => entry.toolCallId === toolCallId && entry.type === 'tool.use.completed'),
    );
    expect(results.map((entry) => [entry?.content, entry?.status])).toEqual([
      ['Echo: over stdio', 'available'],
      ['Echo: over HTTP', 'available'],
      ['The sum of 2 and 3 is 5.', 'available'],
      ['The sum of 20 and 22 is 42.', 'available'],
    ]);
    expect(results.every((entry) => entry!.durationMs! >= 0)).toBe(true);
  }

  it('waits for a person, does what was allowed, and is told what was refused', async () => {
    const tools = [{ pattern: 'web__echo', policy: 'ask' as const }];
    const caller = await models.publish(protocol, { toolServers: [web], tools });
    const { threadId } = await createAcknowledged(caller, lineOf('asks'));
    await waitForEntry(caller, threadId, 'tool.confirmation.required');
    const questions = ofTools(await readLog(caller, threadId));
    expect(questions.map(({ type }) => type)).toEqual(['tool.confirmation.required', 'tool.confirmation.required']);
    const decisions = ['allow_once', 'reject_once'].map((decision, i) => ({
      ...{ type: 'permission_decision', requestId: questions[i]!.content, decision },
    }));
    expect((await postEvents(caller, threadId, ...decisions)).status).toBe(200);

    const told = ['Echo: was allowed', 'The call was refused by the person who was asked.'];
    expect((await endOf(caller, threadId)).finalOutput?.text).toBe(`They said:\n${told.join('\n')}`);
    const uses = ofTools(await readLog(caller, threadId)).slice(2);
    expect(uses.map(({ type, status, content }) => [type, status, content]).toSorted()).toEqual([
      ['tool.use.completed', 'available', told[0]],
      ['tool.use.completed', 'error', told[1]],
      ['tool.use.started', 'available', 'Echo Tool'],
    ]);
    // It was let go of while it waited, and is one Run for all that.
    expect(models.requestsOf(lineOf('asks')).map(({ step }) => step)).toEqual([0, 1]);
  });

  it('stops at its limits of tokens, costs and steps, which are no end of the Thread', async () => {
    const prices = { input: 1_000, output: 1_000 };
    const limits = [
      // Of steps that take 100 tokens each: the second one reaches it.
      [{ maxTokens: 150 }, 'token_limit_reached', 2],
      [{ maxCost: 0.15 }, 'cost_limit_reached', 2],
      [{ maxSteps: 1 }, 'step_limit_reached', 1],
      [{ maxTokens: 201, maxCost: 0.201, maxSteps: 3 }, null, 3],
    ] as const;
    const ended = limits.map(async ([limit, code], i) => {
      const line = `${lineOf('step-by-step')} ${i}`;
      const caller = await models.publish(protocol, { model: { prices }, limits: limit, toolServers: [web] });
      const { threadId, run } = await ask(caller, line);
      expect(run).toMatchObject(
        code === null
          ? { status: 'completed', error: null }
          : { status: 'failed', error: { code, retryable: false }, finalOutput: null },
      );
      // A new Run has its limits to itself.
      await say(caller, threadId, `${lineOf('hello')} after ${i}`);
      expect((await endOf(caller, threadId)).finalOutput?.text).toBe('Hello, I am here.');
      const used = usagesOf(await readLog(caller, threadId)).slice(0, -1);
      return [models.requestsOf(line).length, used.length];
    });
    expect(await Promise.all(ended)).toEqual(limits.map(([, , steps]) => [steps, steps]));
  });

  it.each([true, false])('keeps an image of a tool; its model is shown it: %s', async (images) => {
    const caller = await models.publish(protocol, { model: { images }, toolServers: [web] });
    const line = `${lineOf('image')} shown ${images}`;
    const { threadId, run } = await ask(caller, line);
    expect(run.finalOutput?.text).toBe('What a logo.');
    type Files = { files: { id: string; name: string; kind: string; mimeType: string }[] };
    const { files } = (await send<Files>(caller, 'GET', `/threads/${threadId}/files`)).body;
    expect(files).toEqual([expect.objectContaining({ name: 'image.png', kind: 'artifact', mimeType: 'image/png' })]);
    const headers = { authorization: `Bearer ${caller.token}` };
    const content = await fetch(`${caller.baseUrl}/files/${files[0]!.id}/content`, { headers });
    const bytes = Buffer.from(await content.arrayBuffer());
    expect(bytes.subarray(1, 4).toString()).toBe('PNG');
    const log = await readLog(caller, threadId);
    expect(log.find(({ type }) => type === 'session_files.updated')?.content).toBe(files[0]!.id);
    const [, answered] = models.requestsOf(line);
    expect(bodyOf(answered)).toContain(`[image: image.png, image/png, file ${files[0]!.id}]`);
    expect(bodyOf(answered).includes(bytes.toString('base64'))).toBe(images);
  });

  it('is interrupted in the middle of a text: the connection is closed, and the next Run is told what was seen', async () => {
    const caller = await models.publish(protocol);
    const line = `${lineOf('hello')} interrupted`;
    const half = models.provider.hold('half said', (request) => request.line === line);
    const { threadId } = await createAcknowledged(caller, line);
    const request = await half.reached;
    await waitForEntry(caller, threadId, 'agent.message.delta');
    await interrupt(caller, threadId);
    await eventually(() => request.closedAt !== null, { what: 'the connection is closed' });
    // And nobody asks again.
    await say(caller, threadId, `${lineOf('hello')} again`);
    expect((await endOf(caller, threadId)).finalOutput?.text).toBe('Hello, I am here.');
    expect(models.requestsOf(line)).toHaveLength(1);
    const log = await readLog(caller, threadId);
    const stoppedAt = log.findIndex(({ content }) => content === 'cancelled');
    const seen = joined(log.slice(0, stoppedAt), 'agent.message.delta');
    expect(seen).not.toBe('');
    const [next] = models.requestsOf(`${lineOf('hello')} again`);
    expect(bodyOf(next)).toContain(JSON.stringify(seen));
    expect(bodyOf(next)).toContain('[The user stopped this answer here.]');
    half.release();
  });
});

describe('a tool server', () => {
  const publish = (toolServers: ToolServerInput[]): Promise<Caller> =>
    models.publish('openai-compatible', { toolServers, tools: [...ALLOW_ALL], limits: { maxLosses: 2 } });

  it('is told when a Run is interrupted in the middle of a call', async () => {
    const { input, entries } = oddServer();
    const caller = await publish([input]);
    const { threadId } = await createAcknowledged(caller, 'script: odd interrupted\nhang');
    await eventually(() => entries('call')[0], { what: 'the call has come' });
    await interrupt(caller, threadId);
    const told = await eventually(() => entries('cancelled')[0], { what: 'the server knows' });
    expect(told.name).toBe('hang');
    expect(entries('call')[0]!.meta).toMatchObject({ 'spool/userId': 'tester', 'spool/threadId': threadId });
    const { toolCallId } = ofTools(await readLog(caller, threadId))[0]!;
    expect(entries('call')[0]!.meta!['spool/toolCallId']).toBe(toolCallId);
  });

  it('that is killed in the middle of a call is there again for the next one', async () => {
    const { input, entries, processes } = oddServer();
    const caller = await publish([input]);
    const { threadId } = await createAcknowledged(caller, 'script: odd-twice');
    await eventually(() => entries('call')[0], { what: 'the call has come' });
    for (const pid of processes()) process.kill(pid, 'SIGKILL');
    const { status, finalOutput } = await endOf(caller, threadId);
    expect(status).toBe('completed');
    expect(finalOutput!.text).toMatch(/^They said:\nThe outcome is unknown: .*\n\{.*"spool\/threadId":/);
    // Once each: nobody knows what the first has done.
    expect(entries('call').map(({ name }) => name)).toEqual(['hang', 'meta']);
    expect(entries('start')).toHaveLength(2);
    const uses = ofTools(await readLog(caller, threadId)).filter(({ type }) => type === 'tool.use.completed');
    expect(uses.map(({ status: shown }) => shown)).toEqual(['error', 'available']);
  });

  it('that is missing is done without where the agent can, and its tools are unknown', async () => {
    const missing = { name: 'gone', command: '/nonexistent', required: false };
    const caller = await publish([web, missing]);
    const line = 'script: step-by-step with a server missing';
    expect((await ask(caller, line)).run).toMatchObject({ status: 'completed', finalOutput: { text: 'Done.' } });
    expect(bodyOf(models.requestsOf(line)[0])).toContain('web__echo');
    expect(bodyOf(models.requestsOf(line)[0])).not.toContain('gone__');
  });

  it('that is missing fails the Run where the agent cannot do without, after it was tried again', async () => {
    const nobody = `http://127.0.0.1:${await findFreePort()}/mcp`;
    const caller = await publish([web, { name: 'gone', url: nobody }]);
    const { threadId, run } = await ask(caller, 'script: hello without a server');
    expect(run).toMatchObject({ status: 'failed', error: { code: 'tool_server_unavailable', retryable: true } });
    const { rows } = await models.system.database.pool.query(
      `select from events where thread_id = $1 and type = 'run.claimed'`,
      [threadId],
    );
    expect(rows).toHaveLength(2);
    expect(models.requestsOf('script: hello without a server')).toEqual([]);
    // What it tells callers names no server.
    expect(JSON.stringify(await readLog(caller, threadId))).not.toMatch(/gone|127\.0\.0\.1/);
  });
});

describe('the cause of a failed Run', () => {
  const exiting = { name: 'broken', command: process.execPath, args: ['-e', 'process.exit(3)'] };

  it.each<[string, string, ToolServerInput[], string, object]>([
    [
      'an overloaded provider',
      'script: always-overloaded',
      [],
      'The model provider answered 503.',
      {
        ...{
          summary: expect.stringMatching(/^HTTP 503 from 127\.0\.0\.1:\d+$/) as string,
          attempt: 1,
          source: 'provider',
        },
        ...{ status: 503, type: 'server_error', message: expect.stringContaining('overloaded') as string },
      },
    ],
    [
      'a program that exits',
      'script: hello',
      [exiting],
      'A tool server that the agent needs did not answer.',
      { summary: 'tool server broken: exit status 3', attempt: 1, source: 'tool_server', name: 'broken', exitCode: 3 },
    ],
  ])('is shown to operators, and not to callers: %s', async (_, text, toolServers, message, cause) => {
    const caller = await models.publish('openai-compatible', {
      toolServers,
      limits: { maxLosses: 1, providerRetryMs: 0 },
    });
    const { threadId, run } = await ask(caller, text);
    expect(run).toMatchObject({ status: 'failed', error: { message } });
    const operator = operatorOf(models.system, models.api);
    const shown = await send<{ run: object; timeline: { spans: { cause: object | null }[] } }>(
      operator,
      'GET',
      `/runs/${run.id}/timeline`,
    );
    expect(shown.body.run).toMatchObject({ cause });
    expect(shown.body.timeline.spans.at(-1)!.cause).toMatchObject({ summary: (cause as { summary: string }).summary });
    const paths = [`/threads/${threadId}`, `/threads/${threadId}/runs`, `/threads/${threadId}/runs/${run.id}`];
    const lists = [`/threads/${threadId}/events`, `/threads/${threadId}/messages`, '/threads'];
    const extended = [...paths, ...lists].flatMap((path) => [path, `${path}?extended=true`]);
    const answers = await Promise.all(extended.map((path) => send(caller, 'GET', path)));
    const stream = await fetch(`${caller.baseUrl}/threads/${threadId}/events/stream?until=idle&extended=true`, {
      headers: { Authorization: `Bearer ${caller.token}` },
    });
    const told = JSON.stringify(answers.map(({ body }) => body)) + (await stream.text());
    expect(told).toContain('event: thread.event');
    expect(told).toContain(message);
    expect(told).not.toMatch(/currently overloaded|server_error|exit status|broken/);
    expect(told).not.toContain(new URL(models.provider.openaiUrl).host);
  });
});

it('a fallback model of the other protocol answers while the provider of the first one refuses connections', async () => {
  const refused = `http://127.0.0.1:${await findFreePort()}/v1`;
  const { anthropicUrl } = models.provider;
  const fallback = {
    provider: 'anthropic',
    name: 'second',
    baseUrl: anthropicUrl,
    apiKey: { env: 'MODEL_KEY' },
  } as const;
  const prices = { input: 1_000, output: 1_000 };
  const caller = await models.publish('openai-compatible', {
    model: { baseUrl: refused, prices: { input: 1, output: 1 } },
    fallbackModels: [{ ...fallback, prices }],
    toolServers: [web],
  });
  const { run } = await ask(caller, 'script: step-by-step by a fallback model');
  expect(run).toMatchObject({ status: 'completed', finalOutput: { text: 'Done.' } });
  const { body } = await send<{
    timeline: {
      spans: { kind: string; name: string }[];
      usage: { inputTokens: number; outputTokens: number; cost: number };
    };
  }>(operatorOf(models.system, models.api), 'GET', `/runs/${run.id}/timeline`);
  const { spans, usage } = body.timeline;
  expect(spans.flatMap(({ kind, name }) => (kind === 'model' ? [name] : []))).toEqual(['second', 'second', 'second']);
  expect(usage.cost).toBeCloseTo((usage.inputTokens + usage.outputTokens) / 1_000);
});

// Last: the others have that worker.
describe('a worker that is killed in the middle of an answer', () => {
  // The one whose thoughts must come back signed; test/faults/model-workers.e2e.spec.ts kills workers in both.
  const protocols = isNight ? PROTOCOLS : (['anthropic'] as const);
  it.each(protocols)('is followed by one that goes on from what is stored (%s)', async (protocol) => {
    const { input, entries, processes } = oddServer();
    const caller = await models.publish(protocol, {
      model: { settings: THINKS[protocol] },
      toolServers: [input],
      tools: [...ALLOW_ALL],
    });
    const line = `script: looks by ${protocol}`;
    const half = models.provider.hold('half said', (request) => request.line === line && request.step === 1);
    const { threadId } = await createAcknowledged(caller, line);
    await half.reached;
    const servers = processes();
    expect(servers).toHaveLength(1);
    await worker.kill('SIGKILL');
    worker = await models.system.startWorker();
    half.release();
    const ended = await endOf(caller, threadId);
    expect(ended.finalOutput?.text).toBe('All is well.');
    const { rows } = await models.system.database.pool.query('select cause from run_summaries where run_id = $1', [
      ended.id,
    ]);
    expect(rows).toEqual([{ cause: expect.objectContaining({ source: 'worker', attempt: 1 }) as object }]);

    // The tool is not asked again, and what the cut answer used is not counted.
    expect(models.requestsOf(line).map(({ step }) => step)).toEqual([0, 1, 1]);
    expect(entries('call')).toHaveLength(1);
    const log = await readLog(caller, threadId);
    expect(ofTools(log)).toHaveLength(2);
    expect(lastMessage(log)).toBe('All is well.');
    expect(usagesOf(log)).toEqual([
      { inputTokens: 50, outputTokens: 25 },
      { inputTokens: 90, outputTokens: 12 },
    ]);
    // Nothing is left of the killed worker's tool server.
    await eventually(() => !servers.some(isRunning), { what: 'its tool server has ended' });
  });
});
