import { once } from 'node:events';
import { request, type IncomingMessage } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { AccessStore } from '#access';
import {
  describeWithPrivateRedis,
  eventually,
  faultProxy,
  startPrivateRedis,
  type FaultProxy,
  type PrivateRedis,
  type SpawnedNode,
} from '#testing';
import {
  createAcknowledged,
  getThread,
  inParallel,
  postEvents,
  readStream,
  send,
  type Caller,
} from '../support/client.ts';
import { documentedMetrics, metricsUrlOf, MetricsReader, parseMetrics, total } from '../support/metrics-reader.ts';
import { addAgent } from '../support/more-agents.ts';
import { ScriptedProvider } from '../support/provider/scripted-provider.ts';
import { startSystem, type ApiProcess, type System } from '../support/system.ts';

/** Long enough for a machine that is busy with much else: a lease that is lost is one more step, and one more claim. */
const LEASE_MS = 4_000;
const SLOTS = 4;
/** Those that say how a process is made, and so never move. */
const CONSTANT = ['spool_build_info', 'spool_slots'];

/** Every metric is moved by what it is about, in processes as they are deployed; the last test holds the list against the documentation. */
describeWithPrivateRedis('metrics', () => {
  const reader = new MetricsReader();
  let redis: PrivateRedis;
  let provider: ScriptedProvider;
  let system: System;
  let toDatabase: FaultProxy;
  let api: ApiProcess;
  /** Reaches PostgreSQL by the proxy, as the worker does. */
  let other: ApiProcess;
  let worker: SpawnedNode;
  let operator: Caller;

  beforeAll(async () => {
    redis = await startPrivateRedis();
    provider = await ScriptedProvider.start({});
    const env = {
      ...{ MODEL_KEY: provider.apiKey, ALLOWED_PRIVATE_ADDRESSES: '127.0.0.1', METRICS_PORT: '0' },
      ...{ LEASE_MS: String(LEASE_MS), WORKER_SLOTS: String(SLOTS) },
      // Room for one Run of 8 MiB.
      ...{ RUN_MEMORY_BYTES: String(64 * 1024 ** 2), RUN_MEMORY_PERCENT_PER_ORGANIZATION: '100' },
    };
    system = await startSystem({ queueUrl: redis.url, env });
    toDatabase = await faultProxy(Number(new URL(system.databaseUrl).port || 5432));
    const byProxy = { DATABASE_URL: toDatabase.through(system.databaseUrl) };
    [api, other] = await Promise.all([system.startApi(), system.startApi(byProxy)]);
    await reader.read(api.process);
    worker = await system.startWorker(byProxy);
    const store = new AccessStore(system.database.pool);
    const { token } = await store.mintToken({ kind: 'operator', name: 'metrics' });
    operator = { ...api.caller, baseUrl: `${new URL(api.caller.baseUrl).origin}/admin/v1`, token };
    await Promise.all([api.process, other.process, worker].map((process) => reader.read(process)));
  }, 120_000);

  afterAll(async () => {
    redis.resume();
    await system.stop();
    await Promise.all([provider.close(), toDatabase.close()]);
    await redis.stop();
  });

  /** Scrapes the process until the sum of these series is as it has to be. */
  function seen(
    process: SpawnedNode,
    is: (sum: number) => boolean,
    name: string,
    ...labels: string[]
  ): Promise<unknown> {
    const look = async (): Promise<boolean> => is(total(await reader.read(process), name, ...labels));
    return eventually(look, { what: `${name}{${labels.join()}} is as it has to be`, timeoutMs: 30_000 });
  }

  const some = (sum: number): boolean => sum > 0;
  const none = (sum: number): boolean => sum === 0;

  const statusOf = async (threadId: string): Promise<string> =>
    (await getThread(api.caller, threadId)).body.run?.status ?? '';
  const until = (threadId: string, status: string): Promise<unknown> =>
    eventually(async () => (await statusOf(threadId)) === status, { what: `the Run is ${status}`, timeoutMs: 30_000 });

  it('tell of a Run, its steps and who follows it', async () => {
    const { threadId } = await createAcknowledged(api.caller, 'hello /tool /pause 20 /pieces 150');
    const stream = readStream(api.caller, `/threads/${threadId}/events/stream?until=idle`);
    await seen(api.process, some, 'spool_streams_open');
    await seen(api.process, some, 'spool_http_requests_open');
    await seen(api.process, some, 'spool_work_rows', 'state="leased"');
    await seen(worker, some, 'spool_slots_in_use');
    await stream;
    await seen(api.process, none, 'spool_streams_open');
    await seen(worker, none, 'spool_slots_in_use');
    const ofApi = await reader.read(api.process);
    const route = 'route="/api/v1/agents/:agentId/threads"';
    expect(total(ofApi, 'spool_http_requests_total', 'method="POST"', route, 'status="201"')).toBe(1);
    expect(total(ofApi, 'spool_http_request_duration_seconds_count', 'method="POST"', route)).toBe(1);
    expect(total(ofApi, 'spool_http_requests_total', 'events/stream"', 'status="200"')).toBe(1);
    expect(total(ofApi, 'spool_http_request_duration_seconds_count', 'events/stream"')).toBe(0);
    expect(total(ofApi, 'spool_stream_entries_total')).toBeGreaterThan(20);
    expect(total(ofApi, 'spool_runs_created_total')).toBe(1);
    // One that takes too long is left to the dispatcher.
    const sent = total(ofApi, 'spool_offers_total', 'path="fast"', 'outcome="sent"');
    expect(sent + total(ofApi, 'spool_offers_total', 'path="fast"', 'outcome="dropped"')).toBe(1);
    expect(total(ofApi, 'spool_offer_latency_seconds_count')).toBe(sent);
    expect(total(ofApi, 'spool_wakeups_total', 'direction="received"')).toBeGreaterThan(0);
    expect(total(ofApi, 'spool_append_duration_seconds_count')).toBe(
      total(ofApi, 'spool_appends_total', 'outcome="ok"'),
    );
    const ofWorker = await reader.read(worker);
    expect(total(ofWorker, 'spool_runs_ended_total', 'outcome="completed"')).toBe(1);
    expect(total(ofWorker, 'spool_run_start_latency_seconds_count')).toBe(1);
    expect(total(ofWorker, 'spool_step_duration_seconds_count', 'kind="model"', 'outcome="ok"')).toBe(2);
    expect(total(ofWorker, 'spool_step_duration_seconds_count', 'kind="tool"', 'outcome="ok"')).toBe(1);
    expect(total(ofWorker, 'spool_tool_calls_total', 'outcome="ok"')).toBe(1);
    expect(total(ofWorker, 'spool_tokens_total', 'direction="output"')).toBeGreaterThan(0);
    expect(total(ofWorker, 'spool_wakeups_total', 'direction="sent"')).toBeGreaterThan(0);
    expect(total(ofWorker, 'spool_slots')).toBe(SLOTS);
    // Of the installation only an api tells.
    expect([...ofWorker.keys()]).not.toContain('spool_queue_depth');
  });

  it('tell of Runs that fail, and of what is tried again', async () => {
    const failing = await createAcknowledged(api.caller, '/fail now');
    const flaky = await createAcknowledged(api.caller, '/flaky again');
    await Promise.all([until(failing.threadId, 'failed'), until(flaky.threadId, 'completed')]);
    const ofWorker = await reader.read(worker);
    expect(total(ofWorker, 'spool_run_failures_total', 'code="provider_rejected"')).toBe(1);
    expect(total(ofWorker, 'spool_runs_ended_total', 'outcome="failed"')).toBe(1);
    expect(total(ofWorker, 'spool_run_losses_total', 'reason="retryable_failure"')).toBe(1);
    expect(total(ofWorker, 'spool_step_duration_seconds_count', 'kind="model"', 'outcome="error"')).toBe(2);
  });

  it('tell of model providers, by how they answer', async () => {
    const model = { provider: 'openai-compatible' as const, name: 'scripted', baseUrl: provider.openaiUrl };
    const manifest = { name: 'model', harness: { name: 'model' }, model: { ...model, apiKey: { env: 'MODEL_KEY' } } };
    const caller = { ...api.caller, agentId: await addAgent(system, manifest) };
    const good = await createAcknowledged(caller, 'script: hello');
    const refused = await createAcknowledged(caller, 'script: unauthorized');
    const page = await createAcknowledged(caller, 'script: html');
    await Promise.all([
      until(good.threadId, 'completed'),
      ...[refused, page].map(({ threadId }) => until(threadId, 'failed')),
    ]);
    const ofWorker = await reader.read(worker);
    expect(total(ofWorker, 'spool_provider_oddities_total', 'kind="frame"')).toBeGreaterThan(0);
    const name = 'spool_provider_requests_total';
    // On a busy machine a lease can be lost while the providers' packages are loaded: that call is stopped, and made again.
    expect(total(ofWorker, name, 'provider="openai-compatible"', 'outcome="ok"')).toBe(1);
    expect(total(ofWorker, name, 'provider="openai-compatible"', 'outcome="provider_auth"')).toBe(1);
    expect(total(ofWorker, name, 'provider="openai-compatible"', 'outcome="provider_rejected"')).toBe(1);
    expect(total(ofWorker, 'spool_provider_request_duration_seconds_count')).toBe(total(ofWorker, name));
  });

  it('tell of conflicts between processes', async () => {
    const { threadId } = await createAcknowledged(api.caller, 'hello');
    const callers = [api.caller, other.caller];
    const conflicts = async (): Promise<boolean> => {
      await inParallel(8, 8, (i) => postEvents(callers[i % 2]!, threadId, { type: 'user_message', text: 'hello' }));
      const scraped = await Promise.all([api.process, other.process].map((process) => reader.read(process)));
      return scraped.some((one) => total(one, 'spool_appends_total', 'outcome="conflict"') > 0);
    };
    await eventually(conflicts, { what: 'two apis were in each other’s way', timeoutMs: 30_000 });
  });

  it('tell of an append that is refused because its Run is another’s by now', async () => {
    const fenced = async (): Promise<boolean> => {
      const { threadId, runId } = await createAcknowledged(api.caller, 'hello /pause 20 /pieces 500');
      await until(threadId, 'running');
      toDatabase.stall();
      // The worker gathers pieces for 50 ms, and then sends an append that does not arrive. If it has sent none, the next try may.
      await sleep(75);
      await postEvents(api.caller, threadId, { type: 'user_interrupt', runId });
      toDatabase.resume();
      await seen(worker, none, 'spool_slots_in_use');
      return total(await reader.read(worker), 'spool_appends_total', 'outcome="refused"') > 0;
    };
    await eventually(fenced, { what: 'an append was refused', timeoutMs: 45_000 });
    expect(total(await reader.read(worker), 'spool_leases_lost_total')).toBeGreaterThan(0);
    expect(total(await reader.read(api.process), 'spool_runs_ended_total', 'outcome="cancelled"')).toBeGreaterThan(0);
  });

  it('tell of a worker that stands still, what is due meanwhile, and who takes over', async () => {
    const { threadId } = await createAcknowledged(api.caller, 'hello /pause 20 /pieces 150');
    await until(threadId, 'running');
    worker.signal('SIGSTOP');
    // Nobody takes them: its slots are still known, so they wait in the queue.
    await inParallel(3, 3, () => createAcknowledged(api.caller, 'wait'));
    await seen(api.process, (sum) => sum >= 3, 'spool_queue_depth');
    await seen(api.process, (sum) => sum > 1, 'spool_oldest_ready_seconds');
    await seen(api.process, some, 'spool_due_rows');
    await seen(api.process, none, 'spool_workers_alive');
    const second = await system.startWorker();
    await seen(api.process, (sum) => sum === SLOTS, 'spool_worker_slots');
    await seen(second, some, 'spool_run_losses_total', 'reason="lease_expired"');
    await seen(api.process, none, 'spool_due_rows');
    worker.signal('SIGCONT');
    await seen(worker, some, 'spool_leases_lost_total');
    await until(threadId, 'completed');
    await seen(api.process, (sum) => sum === 2, 'spool_workers_alive');
    await second.kill('SIGTERM');
    await seen(api.process, (sum) => sum === 1, 'spool_workers_alive');
  }, 120_000);

  it('show a paused queue, and Runs that the fast path leaves to the dispatcher', async () => {
    expect((await send(operator, 'POST', '/queue/pause')).status).toBe(200);
    await seen(api.process, some, 'spool_queue_paused');
    const { threadId } = await createAcknowledged(api.caller, 'later');
    await seen(api.process, some, 'spool_offers_total', 'path="fast"', 'outcome="dropped"');
    await seen(api.process, some, 'spool_work_rows', 'state="ready"');
    expect((await send(operator, 'POST', '/queue/resume')).status).toBe(200);
    await seen(api.process, none, 'spool_queue_paused');
    await until(threadId, 'completed');
    await seen(worker, some, 'spool_offers_total', 'path="dispatcher"', 'outcome="sent"');
  });

  it('show Runs that the fast path enqueues', async () => {
    const isSent = async (): Promise<boolean> => {
      await createAcknowledged(api.caller, 'at once');
      return total(await reader.read(api.process), 'spool_offers_total', 'path="fast"', 'outcome="sent"') > 0;
    };
    await eventually(isSent, { what: 'one is sent' });
  });

  it('are answered while Redis says nothing, which they tell', async () => {
    redis.pause();
    await seen(api.process, none, 'spool_queue_up');
    await seen(api.process, none, 'spool_wakeup_bus_up');
    await seen(api.process, none, 'spool_rate_limit_store_up');
    await seen(worker, none, 'spool_queue_up');
    await seen(api.process, some, 'spool_queue_away');
    await createAcknowledged(api.caller, 'hello');
    await seen(api.process, some, 'spool_offers_total', 'path="fast"', 'outcome="failed"');
    const scraped = await reader.read(api.process);
    expect(total(scraped, 'spool_database_up')).toBe(1);
    expect([...scraped.keys()]).not.toContain('spool_queue_depth');
    redis.resume();
    for (const name of ['spool_queue_up', 'spool_wakeup_bus_up', 'spool_rate_limit_store_up'])
      for (const process of [api.process, other.process]) await seen(process, some, name);
  });

  it('are answered while PostgreSQL says nothing, which they tell', async () => {
    toDatabase.stall();
    await seen(other.process, none, 'spool_database_up');
    await seen(worker, none, 'spool_database_up');
    const scraped = await reader.read(other.process);
    expect(total(scraped, 'spool_queue_up')).toBe(1);
    expect([...scraped.keys()]).not.toContain('spool_due_rows');
    toDatabase.resume();
    await seen(other.process, some, 'spool_database_up');
    await seen(worker, some, 'spool_database_up');
  });

  it('are behind an operator’s token on the API’s port, and the same there', async () => {
    const { origin } = new URL(api.caller.baseUrl);
    const get = (token?: string) =>
      fetch(`${origin}/metrics`, token === undefined ? {} : { headers: { authorization: `Bearer ${token}` } });
    expect((await get()).status).toBe(401);
    expect((await get(api.caller.token)).status).toBe(403);
    const answer = await get(operator.token);
    expect(answer.status).toBe(200);
    expect(answer.headers.get('content-type')).toMatch(/^text\/plain; version=/);
    const own = await reader.read(api.process);
    // Of Node's handles and requests only the kinds that are open at that moment are told.
    const names = (series: Iterable<string>) => [...series].map((one) => one.replace(/\{.*/s, ''));
    const named = (series: Iterable<string>) =>
      new Set(names(series).filter((name) => !name.startsWith('nodejs_active_')));
    expect(named(parseMetrics(await answer.text()).keys())).toEqual(named(own.keys()));
    expect(total(own, 'spool_http_requests_total', 'route="/metrics"', 'status="401"')).toBe(1);
  });

  it('come with the health of the process, which needs no token either', async () => {
    const ready = async (process: SpawnedNode): Promise<unknown> =>
      (await fetch(`${metricsUrlOf(process.output())}/health/ready`)).json();
    const parts = { status: 'ready', database: 'ok', queue: 'ok', reasons: [] };
    const isReady = async (): Promise<boolean> => {
      expect(await ready(api.process)).toEqual(parts);
      expect(await ready(worker)).toEqual({ ...parts, worker: 'running' });
      return true;
    };
    await eventually(isReady, { what: 'both are ready' });
    const other = await fetch(`${metricsUrlOf(worker.output())}/`);
    expect(other.status).toBe(404);
  });

  it('count files whose bytes are lost', async () => {
    const { threadId } = await createAcknowledged(api.caller, 'hello');
    const headers = { authorization: `Bearer ${api.caller.token}`, 'content-type': 'application/json' };
    const body = JSON.stringify({ name: 'a.txt', contentType: 'text/plain', contentBase64: 'aGk=' });
    const posted = await fetch(`${api.caller.baseUrl}/threads/${threadId}/files`, { method: 'POST', headers, body });
    const { file } = (await posted.json()) as { file: { id: string } };
    await system.database.pool.query('update files set blob_key = $2 where id = $1', [file.id, `aa/${'0'.repeat(30)}`]);
    expect((await fetch(`${api.caller.baseUrl}/files/${file.id}/content`, { headers })).status).toBe(410);
    await seen(api.process, some, 'spool_lost_file_reads_total');
  });

  it('count bytes of bodies in flight, and bodies that the task pool parses', async () => {
    const { baseUrl, token } = api.caller;
    const body = JSON.stringify({ events: [{ type: 'user_message', text: 'x', unknown: 'x'.repeat(512 * 1024) }] });
    const headers = {
      authorization: `Bearer ${token}`,
      'content-type': 'application/json',
      'content-length': String(body.length),
    };
    const sending = request(`${baseUrl}/threads/${'0'.repeat(26)}/events`, { method: 'POST', headers });
    const answered = once(sending, 'response') as Promise<[IncomingMessage]>;
    sending.write(body.slice(0, 1_000));
    await seen(api.process, some, 'spool_body_bytes');
    sending.end(body.slice(1_000));
    const [{ statusCode }] = await answered;
    expect(statusCode).toBe(400);
    await seen(api.process, some, 'spool_pool_tasks_total', 'outcome="ok"');
  });

  it('tell of memory that Runs hold, and of Runs that wait for it', async () => {
    const text = '/think 2s /fail '.padEnd(7 * 1024 ** 2, 'x');
    const failing = await inParallel(2, 2, () => createAcknowledged(api.caller, text));
    await seen(worker, some, 'spool_run_memory_bytes');
    await seen(worker, some, 'spool_runs_waiting_for_memory');
    for (const { threadId } of failing) await until(threadId, 'failed');
    await seen(worker, none, 'spool_run_memory_bytes');
    await seen(worker, none, 'spool_runs_waiting_for_memory');
  }, 60_000);

  it('have all moved by now, as documented', () => {
    const documented = documentedMetrics();
    expect(documented.length).toBeGreaterThan(30);
    expect(reader.moved().filter((name) => name.startsWith('spool_'))).toEqual(
      documented.filter((name) => !CONSTANT.includes(name)),
    );
  });
});
