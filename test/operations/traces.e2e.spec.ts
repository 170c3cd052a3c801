import { randomBytes } from 'node:crypto';
import { eventually, reportLatency, type SpawnedNode } from '#testing';
import { postEvents, readLog, send, waitForEntry, type Caller, type ThreadAnswer } from '../support/client.ts';
import { endOf, startModelSystem, type ModelSystem } from '../support/model-system.ts';
import { startSystem } from '../support/system.ts';
import { oddServer } from '../support/tool-servers.ts';
import { TraceCollector, type ReceivedSpan } from '../support/trace-collector.ts';

/** Long enough for a machine that is busy with much else: a lost claim would be one more part of the trace. */
const LEASE_MS = 6_000;
/** Of what may not be exported: said by the caller, by the model, and to the tool. */
const TEXTS = ['my-words', 'the-models-words', 'the-tools-input'];
const CALLS_A_TOOL = {
  steps: [
    { text: ['the-models-words'], toolCalls: [{ name: 'odd__meta', input: { of: 'the-tools-input' } }] },
    { text: ['the-models-words again'], usage: { inputTokens: 30, outputTokens: 7 } },
  ],
};
/** Makes the process print on SIGUSR2 which OpenTelemetry packages its loaded chunks contain. Chunks name each module's file in a comment. */
const TELLS_MODULES = `import { readFileSync } from 'node:fs';
import { Session } from 'node:inspector';
import { fileURLToPath } from 'node:url';
process.on('SIGUSR2', () => {
  const packages = new Set();
  const session = new Session();
  session.connect();
  session.on('Debugger.scriptParsed', ({ params: { url } }) => {
    if (!url.startsWith('file:') || !url.includes('/dist/apps/')) return;
    const modules = readFileSync(fileURLToPath(url), 'utf8').matchAll(/^\\/\\/ node_modules\\/@opentelemetry\\/([^/]+)/gm);
    for (const [, name] of modules) packages.add(name);
  });
  session.post('Debugger.enable');
  session.disconnect();
  console.log('loaded: ' + [...packages].sort());
});`;

let collector: TraceCollector;
let models: ModelSystem;
const odd = oddServer();

const startEnv = ({ url } = collector): Record<string, string> => ({
  OTEL_EXPORTER_OTLP_ENDPOINT: url,
  OTEL_BSP_SCHEDULE_DELAY: '100',
  OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=spec',
  LEASE_MS: String(LEASE_MS),
  LOG_LEVEL: 'debug',
});

beforeAll(async () => {
  collector = await TraceCollector.start();
  models = await startModelSystem({ env: startEnv(), scripts: { 'calls-a-tool': CALLS_A_TOOL } });
}, 120_000);

afterAll(async () => {
  await models.stop();
  await collector.close();
});

interface Traced {
  threadId: string;
  runId: string;
  traceId: string;
  /** The caller's own span. */
  spanId: string;
}

const newTrace = (): { traceId: string; spanId: string; headers: { traceparent: string } } => {
  const [traceId, spanId] = [randomBytes(16).toString('hex'), randomBytes(8).toString('hex')];
  return { traceId, spanId, headers: { traceparent: `00-${traceId}-${spanId}-01` } };
};

/** A new Thread by a caller that has begun a trace. */
async function say(caller: Caller, text: string): Promise<Traced> {
  const { traceId, spanId, headers } = newTrace();
  const input = { type: 'user.message', content: [{ type: 'text', text }] };
  const path = `/agents/${caller.agentId}/threads`;
  const { status, body } = await send<ThreadAnswer>(caller, 'POST', path, { userId: 'me', input }, headers);
  expect(status).toBe(201);
  return { threadId: body.thread.id, runId: body.run!.id, traceId, spanId };
}

const CREATES = 'POST /api/v1/agents/{agentId}/threads';

/** The names of the spans from the top down to this one. */
function pathOf(spans: readonly ReceivedSpan[], span: ReceivedSpan): string[] {
  const parent = parentOf(spans, span);
  return [...(parent ? pathOf(spans, parent) : []), span.name];
}

const only = (spans: readonly ReceivedSpan[], name: string): ReceivedSpan => {
  const found = spans.filter((span) => span.name === name);
  expect([name, found.length]).toEqual([name, 1]);
  return found[0]!;
};

/** The trace, once it has the request and so many claims of the Run, each with its job, which may have been delivered more often. */
const wholeTrace = (traceId: string, claims = 1): Promise<ReceivedSpan[]> =>
  eventually(
    async () => {
      const spans = await collector.traceWith(traceId, CREATES, 'process', 'run');
      const runs = named(spans, 'run');
      return runs.length === claims && runs.every((run) => pathOf(spans, run)[0] === CREATES) ? spans : undefined;
    },
    { what: `the trace has ${claims} claims`, timeoutMs: 30_000 },
  );

const parentOf = (spans: readonly ReceivedSpan[], { parentSpanId }: ReceivedSpan): ReceivedSpan | undefined =>
  spans.find(({ spanId }) => spanId === parentSpanId);

const named = (spans: readonly ReceivedSpan[], name: string): ReceivedSpan[] =>
  spans.filter((span) => span.name === name);

it('follows a message from the request to each step of its Run in one trace, and tells nothing of what was said', async () => {
  const caller = await models.publish('openai-compatible', { toolServers: [odd.input] });
  const { threadId, runId, traceId, spanId } = await say(caller, 'script: calls-a-tool\nmy-words');
  expect((await endOf(caller, threadId)).status).toBe('completed');
  const spans = await wholeTrace(traceId);

  const request = only(spans, CREATES);
  expect(request).toMatchObject({ service: 'spool-api', parentSpanId: spanId, kind: 2, isError: false });
  expect(request.attributes).toEqual({
    'http.request.method': 'POST',
    'http.route': '/api/v1/agents/{agentId}/threads',
    'http.response.status_code': 201,
    'url.scheme': 'http',
  });
  const down = [CREATES, 'append', 'offer', 'process'];
  const run = only(spans, 'run');
  expect(pathOf(spans, run)).toEqual([...down, 'run']);
  expect(run).toMatchObject({ service: 'spool-worker', isError: false });
  expect(run.attributes).toMatchObject({
    ...{ 'spool.thread.id': threadId, 'spool.run.id': runId, 'spool.run.attempt': 1 },
    ...{ 'gen_ai.agent.id': caller.agentId, 'spool.run.status': 'completed' },
  });
  const job = { 'messaging.system': 'bullmq', 'messaging.message.id': `${runId}-1`, 'spool.run.id': runId };
  const process = parentOf(spans, run)!;
  expect(process).toMatchObject({ service: 'spool-worker', kind: 5, attributes: job, links: [] });
  expect(parentOf(spans, process)).toMatchObject({ kind: 4, attributes: job });

  expect(pathOf(spans, only(spans, 'boot'))).toEqual([...down, 'run', 'boot']);
  const steps = named(spans, 'step model');
  expect(steps.map((step) => pathOf(spans, step))).toEqual([1, 2].map(() => [...down, 'run', 'step model']));
  expect(steps[1]!.attributes).toMatchObject({
    ...{ 'gen_ai.request.model': 'scripted', 'gen_ai.provider.name': 'openai-compatible' },
    ...{ 'gen_ai.usage.input_tokens': 30, 'gen_ai.usage.output_tokens': 7 },
  });
  const asked = named(spans, 'POST');
  expect(asked.map((call) => pathOf(spans, call).slice(-2))).toEqual([1, 2].map(() => ['step model', 'POST']));
  expect(asked[0]).toMatchObject({
    kind: 3,
    attributes: { 'server.address': '127.0.0.1', 'http.response.status_code': 200 },
  });
  const call = only(spans, 'tools/call meta');
  expect(pathOf(spans, call)).toEqual([...down, 'run', 'step tool', 'tools/call meta']);
  expect(only(spans, 'step tool').attributes).toMatchObject({
    'gen_ai.tool.name': 'odd__meta',
    'gen_ai.tool.call.id': call.attributes['gen_ai.tool.call.id'],
    'spool.tool.outcome': 'ok',
  });
  // The tool server can go on with it; the model's provider is told nothing.
  expect(odd.entries('call').at(-1)?.meta).toMatchObject({ traceparent: `00-${traceId}-${call.spanId}-01` });
  for (const { headers } of models.requestsOf('script: calls-a-tool'))
    expect(headers).not.toHaveProperty('traceparent');
  const appends = named(spans, 'append');
  expect(appends.every(({ attributes }) => attributes['spool.append.outcome'] === 'appended')).toBe(true);
  expect(appends.map((append) => pathOf(spans, append).at(-2))).toEqual(
    expect.arrayContaining([CREATES, 'process', 'step model', 'run']),
  );
});

it('finds the trace of a Run that the fast path lost', async () => {
  // Into a queue that nobody reads.
  const api = await models.system.startApi({ QUEUE_NAME: 'nobodys-queue' });
  const { threadId, traceId } = await say({ ...api.caller, agentId: models.system.agentId }, 'my-words');
  await endOf(api.caller, threadId);
  const spans = await wholeTrace(traceId);
  const run = only(spans, 'run');
  expect(pathOf(spans, run)).toEqual([CREATES, 'append', 'offer', 'process', 'run']);
  expect(parentOf(spans, parentOf(spans, run)!)?.service).toBe('spool-worker');
  await api.process.kill('SIGKILL');
});

it('goes on with it in another worker when one was killed', async () => {
  const caller = { ...models.api.caller, agentId: models.system.agentId };
  const { threadId, runId, traceId } = await say(caller, '/pieces 4 my-words /crash');
  expect((await models.worker.exited).signal).toBe('SIGKILL');
  models.worker = await models.system.startWorker();
  expect((await endOf(caller, threadId)).status).toBe('completed');
  const spans = await wholeTrace(traceId);
  // Of the first worker's work nothing was told that had not ended; its job may have been delivered again, in vain.
  const run = only(spans, 'run');
  expect(pathOf(spans, run)).toEqual([CREATES, 'append', 'offer', 'process', 'run']);
  expect(parentOf(spans, run)?.attributes['messaging.message.id']).toBe(`${runId}-2`);
  expect(run.attributes).toMatchObject({ 'spool.run.attempt': 2, 'spool.run.status': 'completed' });
});

it('goes on with it after a person has answered, and links to the answer', async () => {
  const tools = [{ pattern: 'odd__meta', policy: 'ask' as const }];
  const caller = await models.publish('anthropic', { toolServers: [odd.input], tools });
  const { threadId, runId, traceId } = await say(caller, 'script: calls-a-tool\nmy-words');
  const { content: requestId } = await waitForEntry(caller, threadId, 'tool.confirmation.required');
  const answer = newTrace();
  const decision = { events: [{ type: 'permission_decision', requestId, decision: 'allow_once' }] };
  const answered = await send(caller, 'POST', `/threads/${threadId}/events`, decision, answer.headers);
  expect(answered.status).toBe(200);
  expect((await endOf(caller, threadId)).status).toBe('completed');

  await collector.traceWith(answer.traceId, 'POST /api/v1/threads/{threadId}/events', 'append');
  const spans = await wholeTrace(traceId, 2);
  const [first, second] = named(spans, 'run').map((run) => parentOf(spans, run)!);
  expect(first).toMatchObject({ links: [], attributes: { 'messaging.message.id': `${runId}-1` } });
  expect(second).toMatchObject({
    links: [answer.traceId],
    attributes: { 'messaging.message.id': `${runId}-2` },
  });
  expect(pathOf(spans, second!)).toEqual([CREATES, 'append', 'offer', 'process']);
  const statuses = named(spans, 'run').map(({ attributes }) => attributes['spool.run.status']);
  expect(statuses).toEqual(['waiting_input', 'completed']);
});

it('tells of a stream once its head is out, and of health never', async () => {
  const caller = { ...models.api.caller, agentId: models.system.agentId };
  const { threadId } = await say(caller, '/pause 60s my-words');
  const { traceId, headers } = newTrace();
  const stop = new AbortController();
  const url = `${caller.baseUrl}/threads/${threadId}/events/stream`;
  const authorization = `Bearer ${caller.token}`;
  const open = await fetch(url, { headers: { authorization, ...headers }, signal: stop.signal });
  const [span] = await collector.traceWith(traceId, 'GET /api/v1/threads/{threadId}/events/stream');
  expect(span!.attributes['http.response.status_code']).toBe(200);
  expect(open.bodyUsed).toBe(false);
  stop.abort();
  const health = newTrace();
  await fetch(new URL('/health/ready', caller.baseUrl), { headers: health.headers });
  expect((await postEvents(caller, threadId, { type: 'user_interrupt' })).status).toBe(200);
  expect((await endOf(caller, threadId)).status).toBe('cancelled');
  expect((await readLog(caller, threadId)).length).toBeGreaterThan(0);
  await eventually(() => collector.spans.some(({ name }) => name === 'GET /api/v1/threads/{threadId}/events'), {
    what: 'what came later is told',
  });
  expect(collector.spans.filter(({ traceId }) => traceId === health.traceId)).toEqual([]);
});

it('has told nothing that anybody said, and no secret', () => {
  expect(collector.spans.length).toBeGreaterThan(50);
  expect(collector.received).toContain('deployment.environment.name');
  const secrets = [models.api.caller.token, models.provider.apiKey, 'Bearer'];
  for (const text of [...TEXTS, ...secrets]) expect([text, collector.received.includes(text)]).toEqual([text, false]);
});

it('sends nothing and loads nothing of it where no collector is set', async () => {
  const NODE_OPTIONS = `--import data:text/javascript,${encodeURIComponent(TELLS_MODULES)}`;
  const system = await startSystem({ env: { NODE_OPTIONS } });
  try {
    const [api, worker] = await Promise.all([system.startApi(), system.startWorker()]);
    const { threadId } = await say(api.caller, 'my-words');
    expect((await endOf(api.caller, threadId)).status).toBe('completed');
    for (const process of [api.process, worker]) expect(await loadedBy(process)).toEqual(['api']);
    const { rows } = await system.database.pool.query('select from run_work where trace_parent is not null');
    expect(rows).toEqual([]);
    const tracing = await system.startWorker(startEnv());
    expect(await loadedBy(tracing)).toContain('sdk-trace-base');
  } finally {
    await system.stop();
  }
}, 120_000);

const whileAway = async (): Promise<void> => {
  const away = await TraceCollector.start();
  const system = await startSystem({ env: startEnv(away) });
  try {
    const [api, worker] = await Promise.all([system.startApi(), system.startWorker()]);
    const told = (): number => api.process.output().split('spans may be lost').length - 1;
    away.mood = 'refuses';
    for (let lot = 1; lot <= 3; lot++) {
      const before = away.requests;
      const { threadId } = await say(api.caller, 'my-words');
      expect((await endOf(api.caller, threadId)).status).toBe('completed');
      await eventually(() => away.requests > before, { what: 'the collector is asked' });
    }
    await eventually(() => told() > 0, { what: 'the log tells of it' });
    away.mood = 'silent';
    await say(api.caller, 'my-words');
    expect(told()).toBe(1);
    const startedAt = performance.now();
    const exits = await Promise.all([api.process.kill('SIGTERM'), worker.kill('SIGTERM')]);
    expect(exits.map(({ code }) => code)).toEqual([0, 0]);
    reportLatency(4_000, performance.now() - startedAt, 'they ended after');
  } finally {
    await system.stop();
    await away.close();
  }
};
test(
  'is not disturbed by a collector that refuses, or is silent: one line in the log, 2 s at the end',
  whileAway,
  90_000,
);

async function loadedBy(process: SpawnedNode): Promise<string[]> {
  process.signal('SIGUSR2');
  const [, list = ''] = await process.waitForLine(/^loaded: (.*)$/);
  return list.split(',');
}
