import { ulid } from 'ulid';
import { HarnessError, type StepContext, type StepEvent, type TranscriptMessage } from '#agents';
import { makeWorld, type World } from './engine.testing.ts';
import { expectInvariants } from './oracle.testing.ts';
import { gate, message, ok, scripted, scriptedHarness, tool } from './scripted-harness.testing.ts';

let world: World;
beforeAll(async () => {
  world = await makeWorld();
});
afterAll(() => world.close());

/** How the first Run ends after its calls have reached `hangs`. */
type Ending = 'its model step fails' | 'its worker is lost' | 'it is interrupted' | 'it is interrupted and then fails';

interface Case {
  calls: string[];
  /** The tool that takes effect and never returns. */
  hangs?: string;
  ends: Ending;
  /** The expected effects of all Runs, by tool, in order. */
  effects: string[];
  outcomes: string[];
  /** The number of confirmation requests in all Runs. */
  requests?: number;
  /** The expected status; default: completed. */
  status?: string;
}

/** The tools `once` and `twice` are not idempotent, `again` is, and `pay` and `send` need permission. */
const CASES: [string, Case][] = [
  [
    'keeps the results of completed calls',
    {
      calls: ['once', 'again'],
      ends: 'its model step fails',
      effects: ['once', 'again'],
      outcomes: ['once ok', 'again ok'],
    },
  ],
  [
    'keeps the results of completed calls after several Runs in a row',
    {
      calls: ['once', 'twice'],
      hangs: 'twice',
      ends: 'it is interrupted and then fails',
      effects: ['once', 'twice'],
      outcomes: ['once ok', 'twice unknown'],
    },
  ],
  [
    'does not repeat an unfinished call, and runs calls that never started',
    {
      calls: ['once', 'again', 'twice'],
      hangs: 'once',
      ends: 'its worker is lost',
      effects: ['once', 'again', 'twice'],
      outcomes: ['once unknown', 'again ok', 'twice ok'],
    },
  ],
  [
    'repeats an unfinished call of an idempotent tool under its id',
    {
      calls: ['once', 'again'],
      hangs: 'again',
      ends: 'its worker is lost',
      effects: ['once', 'again', 'again'],
      outcomes: ['once ok', 'again ok'],
    },
  ],
  [
    'requests no permission again for a call that was allowed and never started',
    {
      calls: ['pay', 'send'],
      hangs: 'pay',
      ends: 'its worker is lost',
      effects: ['pay', 'send'],
      outcomes: ['pay unknown', 'send ok'],
      requests: 2,
    },
  ],
  [
    'does not repeat a call that an interrupt cut',
    {
      calls: ['once', 'again'],
      hangs: 'once',
      ends: 'it is interrupted',
      effects: ['once', 'again'],
      outcomes: ['once unknown', 'again ok'],
    },
  ],
  [
    'requests permission again for an undecided call',
    {
      calls: ['once', 'pay'],
      ends: 'it is interrupted',
      effects: ['once'],
      outcomes: ['once ok'],
      requests: 2,
      status: 'waiting_input',
    },
  ],
];

/** Returns a harness that calls the tools and then writes a text. Its model step fails while `isDown` returns true. */
function callingHarness({ calls, hangs }: Case, isDown: () => boolean) {
  const effects: string[] = [];
  const prompts: (readonly TranscriptMessage[])[] = [];
  const hang = gate();
  async function* step({ transcript }: StepContext): AsyncGenerator<StepEvent> {
    prompts.push(transcript);
    if (!transcript.some(({ role }) => role === 'tool')) yield message('', ...calls);
    else if (isDown()) throw new HarnessError('provider_unavailable');
    else yield message('All done.');
  }
  const tools = ['once', 'twice', 'again', 'pay', 'send'].map((name) =>
    tool(
      name,
      async ({ toolCallId }) => {
        effects.push(`${name} ${toolCallId}`);
        if (name === hangs && effects.filter((effect) => effect.startsWith(name)).length === 1) await hang.pass();
        return ok(`${name} worked`);
      },
      { idempotent: name === 'again', policy: ['pay', 'send'].includes(name) ? 'ask' : 'allow' },
    ),
  );
  return { effects, prompts, hang, harness: scriptedHarness(step, tools) };
}

it.each(CASES)('a Run that continues another one %s', async (_what, example) => {
  let isDown = example.ends === 'its model step fails';
  const { effects, prompts, hang, harness } = callingHarness(example, () => isDown);
  const worker = await world.makeWorker({ harnesses: [harness] });
  const said = await world.say('work', { ...scripted, limits: { maxLosses: 1, providerRetryMs: 0 } });
  const { threadId } = said;
  const asked = async () =>
    (await world.stream(threadId)).flatMap(({ type, data }) =>
      type === 'tool.confirmation_requested' ? [data as { requestId: string; toolCallId: string }] : [],
    );
  const retry = async (runId: string) => {
    const run = { runId: ulid(), agentVersion: said.agentVersion, limits: said.limits };
    await world.handle(threadId, { type: 'retry_run', runId, run });
    await worker.engine.executeJob({ threadId, runId: run.runId, dispatch: 1 });
    return run.runId;
  };

  // 1. The first Run ends early.
  let execution = worker.engine.executeJob(said.job);
  if (example.ends === 'its worker is lost' && example.calls.includes('pay')) {
    await execution;
    for (const { requestId } of await asked())
      await world.handle(threadId, { type: 'decide_permission', requestId, decision: 'allow_once', by: 'P' });
    execution = worker.engine.executeJob({ ...said.job, dispatch: 2 });
  }
  if (example.hangs !== undefined) await hang.reached;
  else await execution;
  if (example.ends === 'its worker is lost') {
    await world.endLease(said.runId);
    await world.makeReaper().reap(new AbortController().signal);
  } else if (example.ends !== 'its model step fails') {
    await world.handle(threadId, { type: 'interrupt', runId: null, by: null });
  }
  hang.open();
  await execution;

  // 2. Another Run continues.
  let runId = said.runId;
  if (example.ends === 'it is interrupted and then fails') {
    isDown = true;
    runId = await retry(runId);
    expect((await world.summary(runId)).status).toBe('failed');
  }
  isDown = false;
  runId = await retry(runId);
  const { status = 'completed', requests = 0 } = example;
  expect((await world.summary(runId)).status).toBe(status);

  const events = await world.stream(threadId);
  expectInvariants(events);
  const toolsById = new Map(
    events.flatMap(({ type, data }) =>
      type === 'assistant.message_added' ? data.toolCalls.map((call) => [call.toolCallId, call.toolName] as const) : [],
    ),
  );
  // Each call was requested once, so it has one id.
  expect([...toolsById.values()]).toEqual(example.calls);
  expect(effects.map((effect) => effect.split(' ')[0])).toEqual(example.effects);
  expect(effects.every((effect) => toolsById.has(effect.split(' ')[1]!))).toBe(true);
  const results = events.flatMap(({ type, data }) => (type === 'tool.completed' ? [data] : []));
  expect(results.map(({ toolName, outcome }) => `${toolName} ${outcome}`)).toEqual(example.outcomes);
  expect(await asked()).toHaveLength(requests);
  expect(new Set((await asked()).map(({ toolCallId }) => toolCallId)).size).toBe(
    example.calls.filter((name) => name === 'pay' || name === 'send').length,
  );
  if (status !== 'completed') return;
  const known = prompts.at(-1)!.flatMap((entry) => (entry.role === 'tool' ? [entry.toolCallId] : []));
  expect(known.toSorted()).toEqual([...toolsById.keys()].toSorted());
});
