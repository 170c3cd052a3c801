import { type Delays, eventually, LoopDelay, reportTable } from '#testing';
import { createAcknowledged, createThread, postEvents, type Caller } from '../support/client.ts';
import { delayCell, reportMissedGoals } from '../support/delays.ts';
import { FOLDER_STEPS, HEAVY_RUNS, type HeavyAgent, type HeavyRun } from '../support/heaviest-runs.ts';
import { createWithFile } from '../support/heavy-files.ts';
import { endOf, startModelSystem, type ModelSystem } from '../support/model-system.ts';
import { isLong } from '../support/system.ts';
import { heavyServer, heavyServerOverHttp, type ListeningServer } from '../support/tool-servers.ts';
import { addAgent } from '../support/more-agents.ts';

/**
 * Each tool, the model's answer and the transcript get as much as they may have, in one Run at a time and in ten at once. None
 * may hold the event loop of the worker. What the kernel gives to other processes meanwhile does not count.
 */

const AT_ONCE = 10;
/** Each row is repeated for so long. Of few delays the 99th percentile is the longest, or nearly. */
const MEASURED_MS = isLong ? 3_000 : 500;
const ALLOW_ALL = [{ pattern: '*', policy: 'allow' as const }];

const nameOf = ({ agent, tool, largest }: HeavyRun): string => `${tool} (${agent}): ${largest}`;
const scriptOf = (run: HeavyRun): string => `row-${HEAVY_RUNS.indexOf(run)}`;

describe('the event loop of a worker', () => {
  let models: ModelSystem;
  let web: ListeningServer;
  let callers: Record<HeavyAgent, Caller>;
  let loop: LoopDelay;
  const table = new Map<HeavyRun, { alone: Delays; together: Delays }>();

  beforeAll(async () => {
    web = await heavyServerOverHttp();
    const scripts = HEAVY_RUNS.flatMap((run) => (run.steps ? [[scriptOf(run), { steps: run.steps }] as const] : []));
    models = await startModelSystem({
      env: { MANIFEST_VARIABLES: 'MODEL_KEY', ...LoopDelay.env },
      scripts: {
        ...Object.fromEntries(scripts),
        folder: { steps: FOLDER_STEPS },
        again: { steps: [{ text: ['Yes.'] }] },
      },
    });
    loop = new LoopDelay(models.worker);
    const agent = { tools: ALLOW_ALL, kind: 'pet' as const, model: { contextTokens: 10_000_000 } };
    callers = {
      stdio: await models.publish('openai-compatible', { ...agent, toolServers: [heavyServer] }),
      http: await models.publish('anthropic', { ...agent, toolServers: [{ name: 'heavy', url: web.url }] }),
      echo: {
        ...models.api.caller,
        agentId: await addAgent(models.system, { name: 'echo', harness: { name: 'echo' }, tools: ALLOW_ALL }),
      },
      guide: {
        ...models.api.caller,
        agentId: await addAgent(models.system, { name: 'guide', harness: { name: 'guide' }, tools: ALLOW_ALL }),
      },
    };
    const { threadId } = await createAcknowledged(callers.stdio, 'script: folder');
    const filled = await eventually(() => endOf(callers.stdio, threadId), {
      what: 'the folder is full',
      timeoutMs: 150_000,
    });
    expect(filled.status).toBe('completed');
  }, 240_000);

  afterAll(async () => {
    reportTable('worker-delays', tableLines());
    await models.stop();
    await web.close();
  });

  let runs = 0;
  async function execute(run: HeavyRun): Promise<void> {
    const caller = callers[run.agent];
    runs += 1;
    const text = run.says ?? `script: ${scriptOf(run)} ${runs}`;
    const { threadId } = await (run.file === undefined
      ? createAcknowledged(caller, text)
      : createWithFile(caller, text, run.file));
    const ended = await endOf(caller, threadId, run.isSlow ? 180_000 : undefined);
    expect({ status: ended.status, error: ended.error }).toMatchObject(
      run.ends === undefined
        ? { status: 'completed', error: null }
        : { status: run.ends, error: { code: 'output_too_large' } },
    );
    // What was kept is large, and of no use here.
    models.provider.requests.length = 0;
    if (run.then === undefined) return;
    expect((await postEvents(caller, threadId, { type: 'user_message', text: `script: again ${runs}` })).status).toBe(
      200,
    );
    await eventually(async () => (await endOf(caller, threadId)).id !== ended.id, {
      what: 'the second Run has ended',
      timeoutMs: run.isSlow ? 180_000 : 15_000,
    });
  }

  async function measure(run: HeavyRun, count: number): Promise<Delays> {
    return loop.during(async () => {
      const end = performance.now() + MEASURED_MS;
      const repeat = async (): Promise<void> => {
        do await execute(run);
        while (performance.now() < end);
      };
      await Promise.all(Array.from({ length: count }, repeat));
    });
  }

  const inTime = HEAVY_RUNS.filter(({ isSlow }) => isLong || !isSlow);

  describe.each(inTime.map((run) => ({ name: nameOf(run), run })))('$name', ({ run }) => {
    test(
      `is measured alone and ${AT_ONCE} times at once`,
      async () => {
        const alone = await measure(run, 1);
        const together = await measure(run, AT_ONCE);
        table.set(run, { alone, together });
        reportMissedGoals(nameOf(run), { alone, 'ten in parallel': together });
      },
      run.isSlow ? 600_000 : 120_000,
    );
  });

  it('is measured for every tool', async () => {
    const offered = await offeredTools();
    const measured = [...table.keys()].map(({ agent, tool }) => `${agent} ${tool}`);
    expect(measured).toEqual(expect.arrayContaining(offered));
  });

  /** All tools that agents have; the tools that only make a list long have names of their own. */
  async function offeredTools(): Promise<string[]> {
    const offered: string[] = [];
    for (const agent of ['stdio', 'http'] as const) {
      models.provider.requests.length = 0;
      const { body } = await createThread(callers[agent], `script: again ${agent}`);
      await endOf(callers[agent], body.thread.id);
      const { tools = [] } = models.provider.requests[0]?.body as { tools?: NamedTool[] };
      const names = tools.map((tool) => tool.name ?? tool.function?.name ?? '');
      // Each agent has the same file tools.
      offered.push(
        ...names.filter((name) => agent === 'stdio' || name.startsWith('heavy__')).map((name) => `${agent} ${name}`),
      );
    }
    const scripted = ['echo clock', 'echo send_note', 'echo write_file', 'guide look_up', 'guide write_page'];
    return [...offered.filter((name) => !name.includes('__more_')), ...scripted];
  }

  function tableLines(): string[] {
    const rows = [...table].map(
      ([{ agent, tool, largest }, { alone, together }]) =>
        `| \`${tool}\` | ${agent} | ${largest} | ${delayCell(alone)} | ${delayCell(together)} |`,
    );
    const head = '| tool | agent | largest input | alone: p99 / longest | ten in parallel: p99 / longest |';
    return [head, '|---|---|---|---|---|', ...rows];
  }
});

interface NamedTool {
  name?: string;
  function?: { name: string };
}
