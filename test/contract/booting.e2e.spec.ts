import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Overview, RunTimeline } from '#contract';
import { describeInBrowser, eventually, redisUrl } from '#testing';
import { getThread, readLog, send, type Caller, type ThreadAnswer } from '../support/client.ts';
import { rowOf, told, useConsole } from '../support/console-page.ts';
import { MetricsReader, total } from '../support/metrics-reader.ts';
import { endOf, startModelSystem, type ModelSystem } from '../support/model-system.ts';
import { operatorOf } from '../support/operator.ts';
import { SpoolCommand } from '../support/spool-command.ts';
import { oddServer, slowToStart } from '../support/tool-servers.ts';
import type { Run, Thread } from './support/client.ts';

// Real PostgreSQL, Redis, processes, browser and MCP server. Each Agent has a tool server of its own that takes its time to start.

const BOOT_MS = 1_000;
/** Long enough for a busy machine: a claim that is lost by chance would add an attempt. */
const LEASE_MS = 6_000;
const EITHER_WAIT = expect.stringMatching(/^(delay|queue)$/) as unknown;

interface Begun {
  caller: Caller;
  threadId: string;
  runId: string;
}

interface Shown {
  thread: Thread;
  run: Run;
}

describe('a Run whose tool server takes its time to start', () => {
  let models: ModelSystem;
  let operator: Caller;
  let spool: SpoolCommand;
  let folder: string;
  const metrics = new MetricsReader();

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'spool-booting-'));
    // Tool servers of a worker that is root run as nobody, and look for a file here.
    await chmod(folder, 0o755);
    models = await startModelSystem({
      env: { QUEUE_URL: redisUrl().url, METRICS_PORT: '0', LEASE_MS: String(LEASE_MS) },
      scripts: { 'says-it': { steps: [{ text: ['It is ', 'done.'] }] } },
    });
    operator = operatorOf(models.system, models.api);
    spool = new SpoolCommand({
      SPOOL_URL: new URL(models.api.caller.baseUrl).origin,
      SPOOL_TOKEN: models.system.operatorToken,
    });
  }, 120_000);
  afterAll(async () => {
    await models.stop();
    await rm(folder, { recursive: true });
  });

  /** Creates a Thread of a new Agent. Its tool server waits as long as the file `holdPath` exists. */
  async function begin(holdPath?: string): Promise<Begun> {
    const toolServers = [slowToStart(oddServer().input, BOOT_MS, holdPath)];
    const caller = await models.publish('openai-compatible', { toolServers });
    const input = { type: 'user.message', content: [{ type: 'text', text: 'script: says-it' }] };
    const path = `/agents/${caller.agentId}/threads`;
    const { status, body } = await send<ThreadAnswer>(caller, 'POST', path, { userId: 'me', input });
    expect(status).toBe(201);
    return { caller, threadId: body.thread.id, runId: body.run!.id };
  }

  async function read<Body>(caller: Caller, path: string): Promise<Body> {
    const { status, body } = await send<Body>(caller, 'GET', path);
    expect([path, status]).toEqual([path, 200]);
    return body;
  }

  const becomes = (caller: Caller, threadId: string, status: string) =>
    eventually(async () => (await getThread(caller, threadId)).body.run?.status === status, {
      what: `the Run is ${status}`,
      timeoutMs: 20_000,
    });

  const timelineOf = async (runId: string): Promise<RunTimeline> =>
    (await read<{ timeline: RunTimeline }>(operator, `/runs/${runId}/timeline`)).timeline;

  const lasted = ({ startedAt, endedAt }: RunTimeline['spans'][number]): number =>
    Date.parse(endedAt!) - Date.parse(startedAt);

  const BOOTING = { status: 'booting', startedAt: null, completedAt: null };

  /** Acts while the Run boots, within the 20 s that a tool server may take, and then lets the Run complete. */
  async function whileBooting(act: (begun: Begun) => Promise<void>): Promise<void> {
    const hold = join(folder, 'hold');
    await writeFile(hold, '');
    const begun = await begin(hold);
    await becomes(begun.caller, begun.threadId, 'booting');
    await act(begun);
    await rm(hold);
    const run = await endOf(begun.caller, begun.threadId);
    expect(run).toMatchObject({ status: 'completed', finalOutput: { text: 'It is done.' } });
  }

  test(
    'is booting in the public API, in the admin API, in metrics and in the CLI',
    () =>
      whileBooting(async (begun) => {
        await expectInPublicApi(begun);
        await Promise.all([expectInAdminApi(begun), expectInCli(begun)]);
      }),
    60_000,
  );

  async function expectInPublicApi({ caller, threadId, runId }: Begun): Promise<void> {
    const { thread, run } = await read<Shown>(caller, `/threads/${threadId}`);
    expect([thread.status, run]).toEqual(['RUNNING', expect.objectContaining({ id: runId, ...BOOTING })]);
    const shown = await read<{ run: Run }>(caller, `/threads/${threadId}/runs/${runId}`);
    expect(shown.run).toMatchObject(BOOTING);
    expect((await read<{ runs: Run[] }>(caller, `/threads/${threadId}/runs`)).runs).toMatchObject([BOOTING]);
    const running = await read<{ threads: Thread[] }>(caller, `/agents/${caller.agentId}/threads?status=RUNNING`);
    expect(running.threads.map(({ id }) => id)).toEqual([threadId]);
    expect((await readLog(caller, threadId)).map(({ type }) => type)).not.toContain('run.started');
  }

  async function expectInAdminApi({ runId }: Begun): Promise<void> {
    const { runs } = await read<{ runs: { id: string }[] }>(operator, '/runs?status=booting');
    expect(runs).toEqual([expect.objectContaining({ id: runId, ...BOOTING })]);
    const { overview } = await read<{ overview: Overview }>(operator, '/overview');
    expect(overview.runs).toMatchObject({ booting: 1, running: 0 });
    expect((await timelineOf(runId)).spans.at(-1)).toMatchObject({ kind: 'boot', attempt: 1, endedAt: null });
    const isCounted = async () => {
      const scraped = await metrics.read(models.api.process);
      return total(scraped, 'spool_live_runs', 'status="booting"') === 1;
    };
    await eventually(isCounted, { what: 'metrics count it' });
  }

  async function expectInCli({ runId }: Begun): Promise<void> {
    const [listed, details, summary] = await Promise.all(
      [['run', 'list', '--status', 'booting'], ['run', 'show', runId], ['overview']].map((args) => spool.run(args)),
    );
    expect(listed!.out).toMatch(new RegExp(`${runId}.* booting `));
    expect(details!.out).toMatch(/status +booting/);
    expect(details!.out).toMatch(/running +boot /);
    expect(summary!.out).toContain('0 queued, 1 booting, 0 running');
  }

  describeInBrowser('in a browser', () => {
    const { visit } = useConsole(() => ({ ...models.system, caller: models.api.caller }));

    test(
      'is booting in the console',
      () =>
        visit('wide', async ({ page, open }) => {
          // Load the slowest page first, so that the session exists. The API keeps this first overview for ten times as long as
          // it took, which may be longer than a Run can boot.
          await open('/');
          const readAt = async () => (await read<{ overview: Overview }>(operator, '/overview')).overview.at;
          const first = await readAt();
          await eventually(async () => (await readAt()) !== first, {
            what: 'the overview is read again',
            timeoutMs: 30_000,
          });
          await whileBooting(async ({ runId }) => {
            await open('/');
            await page.getByRole('link', { name: /^Booting 1 now$/ }).waitFor();
            await open('/runs?status=booting');
            await rowOf(page, 'Runs', /Booting/).waitFor();
            await open(`/runs/${runId}`);
            await told(page, 'Booting');
            await rowOf(page, 'Timeline of the Run', /^Boot.*Running/).waitFor();
          });
        }),
      90_000,
    );
  });

  test('has a boot in its timeline, as long as the server takes, without the time of a slow model', async () => {
    const { caller, threadId, runId } = await begin();
    const silent = models.provider.hold('asked');
    await silent.reached;
    // run.started does not wait for the model.
    await becomes(caller, threadId, 'running');
    const before = await timelineOf(runId);
    silent.release();
    await endOf(caller, threadId);
    const { run } = await read<Shown>(caller, `/threads/${threadId}`);
    const { spans } = await timelineOf(runId);
    expect(spans.map(({ kind, outcome }) => [kind, outcome])).toEqual([
      ['queue', 'ok'],
      ['boot', 'ok'],
      ['model', 'ok'],
    ]);
    const [, boot, model] = spans;
    expect(before.spans[1]).toEqual(boot);
    expect(lasted(boot!)).toBeGreaterThanOrEqual(BOOT_MS);
    expect([model!.startedAt, boot!.endedAt]).toEqual([run.startedAt, run.startedAt]);
    const started = (await readLog(caller, threadId)).filter(({ type }) => type === 'run.started');
    expect(started).toMatchObject([{ content: runId, occurredAt: run.startedAt }]);
    const { out } = await spool.run(['run', 'show', runId]);
    expect(out).toMatch(/ [1-9]\.\d{3} s +boot /);
  }, 60_000);

  test('goes back to queued when its worker is killed, and the next worker starts it once', async () => {
    const hold = join(folder, 'hold');
    await writeFile(hold, '');
    const { caller, threadId, runId } = await begin(hold);
    await becomes(caller, threadId, 'booting');
    // This worker claims nothing while the queue is paused, but reaps the lost Run.
    await send(operator, 'POST', '/queue/pause');
    const next = await models.system.startWorker();
    expect((await getThread(caller, threadId)).body.run?.status).toBe('booting');
    expect(await models.worker.kill('SIGKILL')).toMatchObject({ signal: 'SIGKILL' });
    models.worker = next;
    await becomes(caller, threadId, 'queued');
    const { thread, run } = await read<Shown>(caller, `/threads/${threadId}`);
    expect([thread.status, run.startedAt]).toEqual(['RESCHEDULING', null]);
    await rm(hold);
    await send(operator, 'POST', '/queue/resume');
    expect(await endOf(caller, threadId)).toMatchObject({ id: runId, status: 'completed' });
    const types = (await readLog(caller, threadId)).map(({ type }) => type);
    expect(types.filter((type) => type === 'run.started')).toHaveLength(1);
    const { spans, losses } = await timelineOf(runId);
    expect(losses).toBe(1);
    expect(spans.map(({ kind, attempt, outcome }) => [kind, attempt, outcome])).toEqual([
      ['queue', null, 'ok'],
      ['boot', 1, 'cut'],
      // The Run may be delayed before it is ready again.
      ...spans.slice(2, -2).map(() => [EITHER_WAIT, null, 'ok'] as unknown[]),
      ['boot', 2, 'ok'],
      ['model', 2, 'ok'],
    ]);
  }, 60_000);
});
