import type { LogEntry } from '#domain';
import { makeWorld, type World } from './engine.testing.ts';

let world: World;
beforeAll(async () => {
  world = await makeWorld();
});
afterAll(() => world.close());

const shown = (log: LogEntry[]) => log.map(({ type, content }) => `${type}: ${content}`);
const deltas = (log: LogEntry[]) =>
  log.flatMap(({ type, content }) => (type === 'agent.message.delta' ? [content] : [])).join('');

async function execute(text: string, manifest = {}) {
  const { engine } = await world.makeWorker();
  const said = await world.say(text, manifest);
  await engine.executeJob(said.job);
  return { ...said, engine };
}

describe('a Run of the echo agent', () => {
  it('is claimed once if two workers get its job', async () => {
    const { job, threadId } = await world.say('once');
    const workers = await Promise.all([world.makeWorker(), world.makeWorker(), world.makeWorker()]);
    await Promise.all(workers.map(({ engine }) => engine.executeJob(job)));
    for (const { engine } of workers) await engine.executeJob(job);
    const types = await world.types(threadId);
    expect(types.filter((type) => type === 'run.claimed')).toHaveLength(1);
    expect(types.filter((type) => type === 'run.completed')).toHaveLength(1);
  });

  it('is not claimed while the queue is paused', async () => {
    const { engine } = await world.makeWorker({ isPaused: () => true });
    const { job, threadId, runId } = await world.say('wait');
    await engine.executeJob(job);
    expect((await world.run(threadId, runId))?.status).toBe('queued');
  });

  it('has deltas that joined are the final text, without citations', async () => {
    const { threadId, runId } = await execute('see /cite /pieces 300 /pause 1');
    const { final_output } = await world.summary(runId);
    expect(final_output?.text).not.toMatch(/[\u{E200}-\u{E202}]/u);
    expect(final_output?.warnings).toEqual([{ code: 'unresolved_provider_citation', count: 1 }]);
    expect(deltas(await world.log(threadId))).toBe(final_output?.text);
    const message = (await world.stream(threadId)).find(({ type }) => type === 'assistant.message_added');
    expect(JSON.stringify(message?.data)).toMatch(/\u{E200}cite/u);
  });

  it('stores its thinking', async () => {
    const { threadId } = await execute('hm /think 20ms');
    const thinking = (await world.log(threadId)).filter(({ type }) => type === 'agent.thinking.delta');
    const said = thinking.map(({ content }) => content).join('');
    expect(said).toBe('Thought 1 of 5. Thought 2 of 5. Thought 3 of 5. Thought 4 of 5. Thought 5 of 5. ');
  });

  it('gets the earlier messages with the next one', async () => {
    const { threadId, engine, message } = await execute('one');
    const runId = '01BX5ZZKBKACTAV9WEVGEMMVRZ';
    await world.handle(threadId, message('two', runId));
    await engine.executeJob({ threadId, runId, dispatch: 1 });
    const usage = (await world.log(threadId)).filter(({ type }) => type === 'usage.updated');
    expect(usage.map(({ content }) => content)).toEqual([
      '{"inputTokens":1,"outputTokens":3}',
      '{"inputTokens":5,"outputTokens":3}',
    ]);
  });
});

describe('tools', () => {
  it('run immediately if they need no permission', async () => {
    const { threadId, runId } = await execute('time /tool');
    const log = await world.log(threadId);
    const tool = log.filter(({ type }) => type.startsWith('tool.'));
    expect(tool).toMatchObject([
      { type: 'tool.use.started', content: 'Clock', toolName: 'clock', toolInput: {}, status: 'available' },
      { type: 'tool.use.completed', toolName: 'clock', status: 'available', durationMs: expect.any(Number) as number },
    ]);
    expect(tool[0]?.toolCallId).toBe(tool[1]?.toolCallId);
    expect((await world.summary(runId)).final_output?.text).toMatch(
      /^You said: time\nclock \(ok\): The Run was requested at /,
    );
  });

  it('store a file in the same commit as its log entries', async () => {
    const { threadId, runId } = await execute('kept /artifact');
    const { rows } = await world.pool.query('select * from files where thread_id = $1', [threadId]);
    expect(rows).toMatchObject([
      { run_id: runId, kind: 'artifact', name: 'echo.txt', mime_type: 'text/plain', size: 4 },
    ]);
    const [file] = rows as { id: string }[];
    const types = shown(await world.log(threadId)).filter((line) => /^(file|session_files|tool)/.test(line));
    expect(types).toEqual([
      'tool.use.started: Write a file',
      `file.changed: ${file?.id}`,
      `session_files.updated: ${file?.id}`,
      expect.stringMatching(/^tool.use.completed: Wrote echo.txt/),
    ]);
    expect(world.commits).toContainEqual('file.changed files.updated tool.completed');
  });

  it('are refused if the agent denies them', async () => {
    const { threadId, runId } = await execute('x /tool', { tools: [{ pattern: '*', policy: 'deny' }] });
    const tool = (await world.log(threadId)).filter(({ type }) => type.startsWith('tool.'));
    expect(tool).toMatchObject([{ type: 'tool.use.completed', status: 'error', durationMs: null }]);
    expect((await world.summary(runId)).final_output?.text).toMatch(/clock \(refused\): The agent’s policy/);
  });
});

describe('permission', () => {
  const requestsOf = async (threadId: string) =>
    (await world.log(threadId))
      .filter(({ type }) => type === 'tool.confirmation.required')
      .map(({ content }) => content);
  const decide = (threadId: string, requestId: string, decision: 'allow_once' | 'reject_once') =>
    world.handle(threadId, { type: 'decide_permission', requestId, decision, by: 'someone' });

  it('is requested after the calls that need none, and no slot is held meanwhile', async () => {
    const { threadId, runId, engine } = await execute('send /tool /confirm');
    expect((await world.run(threadId, runId))?.status).toBe('waiting_input');
    expect(world.commits.at(-1)).toBe('tool.completed tool.confirmation_requested run.waiting');
    const { rows } = await world.pool.query('select state, holder from run_work where run_id = $1', [runId]);
    expect(rows).toEqual([{ state: 'waiting', holder: null }]);

    const [requestId = ''] = await requestsOf(threadId);
    await decide(threadId, requestId, 'allow_once');
    await engine.executeJob({ threadId, runId, dispatch: 2 });
    expect((await world.summary(runId)).final_output?.text).toMatch(
      /clock \(ok\).*\nsend_note \(ok\): Note 1 was sent\.$/,
    );
    const tool = (await world.log(threadId)).filter(({ toolName }) => toolName === 'send_note').map(({ type }) => type);
    expect(tool).toEqual(['tool.confirmation.required', 'tool.use.started', 'tool.use.completed']);
    const started = (await world.log(threadId)).filter(({ type }) => type === 'run.started');
    expect(started).toHaveLength(1);
  });

  it('when rejected gives a result without a start', async () => {
    const { threadId, runId, engine } = await execute('send /confirm');
    const [requestId = ''] = await requestsOf(threadId);
    await decide(threadId, requestId, 'reject_once');
    await engine.executeJob({ threadId, runId, dispatch: 2 });
    const tool = (await world.log(threadId)).filter(({ type }) => type.startsWith('tool.'));
    expect(tool.map(({ type, status }) => `${type} ${status}`)).toEqual([
      'tool.confirmation.required available',
      'tool.use.completed error',
    ]);
    expect((await world.summary(runId)).final_output?.text).toMatch(/send_note \(refused\)/);
  });

  it('for three calls is decided one by one', async () => {
    const { threadId, runId, engine } = await execute('send /confirm 3');
    const [first = '', second = '', third = ''] = await requestsOf(threadId);
    await decide(threadId, second, 'reject_once');
    await decide(threadId, third, 'allow_once');
    expect((await world.run(threadId, runId))?.status).toBe('waiting_input');
    await decide(threadId, first, 'allow_once');
    expect((await world.run(threadId, runId))?.status).toBe('queued');
    await engine.executeJob({ threadId, runId, dispatch: 2 });
    const text = (await world.summary(runId)).final_output?.text.split('\n').slice(1);
    expect(text).toEqual([
      'send_note (ok): Note 1 was sent.',
      expect.stringMatching(/^send_note \(refused\)/),
      'send_note (ok): Note 3 was sent.',
    ]);
  });
});

describe('failures', () => {
  it('that are not retryable end the Run', async () => {
    const { runId, threadId } = await execute('x /fail');
    const { status, error } = await world.summary(runId);
    expect({ status, error }).toMatchObject({
      status: 'failed',
      error: { code: 'provider_rejected', retryable: false },
    });
    expect(shown(await world.log(threadId)).slice(-2)).toEqual([
      'run.failed: The model provider refused the request.',
      'session.status: IDLE',
    ]);
  });

  it('of the provider requeue the Run with growing delays, and fail it when the time for them is over', async () => {
    const { threadId, runId, engine, job } = await execute('x /fail-retryable');
    const counted = { losses: 0, streak: { of: 'provider', failures: 1 } };
    expect(await world.run(threadId, runId)).toMatchObject({ status: 'queued', dispatch: 2, ...counted });
    await engine.executeJob({ ...job, dispatch: 2 });
    expect(await world.run(threadId, runId)).toMatchObject({ status: 'queued', dispatch: 3 });
    const brief = await execute('x /fail-retryable', { limits: { providerRetryMs: 1 } });
    await brief.engine.executeJob({ ...brief.job, dispatch: 2 });
    expect((await world.summary(brief.runId)).error).toMatchObject({ code: 'provider_unavailable', retryable: true });
    const delays = (await world.stream(threadId)).flatMap((event) =>
      event.type === 'run.requeued' ? [event.data.delayMs] : [],
    );
    expect(delays).toEqual([expect.any(Number), expect.any(Number)]);
    expect(Math.min(...delays)).toBeGreaterThanOrEqual(500);
  });

  it('that are temporary are retried until the Run completes', async () => {
    const { runId, engine, job } = await execute('x /flaky 2');
    for (const dispatch of [2, 3]) await engine.executeJob({ ...job, dispatch });
    expect((await world.summary(runId)).final_output?.text).toBe('You said: x');
  });

  it('of the agent itself do not reveal their cause', async () => {
    const { runId } = await execute('x', { harness: { name: 'none' } });
    expect((await world.summary(runId)).error).toEqual({
      code: 'internal',
      message: 'The Run failed because of an internal error.',
      retryable: false,
    });
  });

  it('come at the limit of steps', async () => {
    const { runId, threadId } = await execute('x /tool', { limits: { maxSteps: 1 } });
    expect((await world.summary(runId)).error).toMatchObject({ code: 'step_limit_reached' });
    expect(await world.types(threadId)).toContain('tool.completed');
  });
});
