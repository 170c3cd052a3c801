import { publishAgentVersion, type AgentManifestInput } from '#agents';
import { eventually } from '#testing';
import { AppendedRun } from './appended-run.ts';
import { createAcknowledged, send, type Acknowledged, type Answer, type Caller, type Json } from './client.ts';
import { operatorOf } from './operator.ts';
import { startSystem, type ApiProcess, type System } from './system.ts';

/** An installation that operators look at: one api, one worker, and an Agent that does as its messages say. */
export interface ConsoleWorld extends System {
  caller: Caller;
  /** The admin API, with the operator's token. Throws unless the answer is a success. */
  admin<Body = Json>(method: 'GET' | 'POST' | 'DELETE', path: string, body?: unknown): Promise<Body>;
  /** A Thread with this message, once its Run is like that. */
  begin(text: string, status: RunStatus): Promise<Acknowledged>;
  statusOf(runId: string): Promise<RunStatus>;
}

export type RunStatus = 'running' | 'waiting_input' | 'completed' | 'failed' | 'cancelled';

/** The Runs of a world, one of each kind; all are begun and none goes on by itself. */
export type ConsoleRuns = Record<'completed' | 'failed' | 'waiting' | 'cancelled' | 'running' | 'long', Acknowledged>;

/** A Run whose provider is unavailable fails without another attempt. */
const MANIFEST: Partial<AgentManifestInput> = {
  description: 'Says again what it is told, and does what the words with a slash ask for.',
  limits: { providerRetryMs: 0 },
};

/** Entries of the longest Thread. */
const LONG = 1_200;

/** `before` is done while no worker runs. */
export async function startConsoleWorld(
  queueUrl: string,
  before: (world: ConsoleWorld) => Promise<void> = async () => undefined,
  env: Record<string, string> = {},
): Promise<ConsoleWorld> {
  const system = await startSystem({ queueUrl, manifest: MANIFEST, env });
  try {
    const world = toWorld(system, await system.startApi());
    await before(world);
    await system.startWorker();
    return world;
  } catch (error) {
    await system.stop();
    throw error;
  }
}

function toWorld(system: System, api: ApiProcess): ConsoleWorld {
  const operator = operatorOf(system, api);
  const admin = async <Body>(method: string, path: string, body?: unknown): Promise<Body> => {
    const answer: Answer<Body> = await send<Body>(operator, method, path, body);
    if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
    return answer.body;
  };
  const statusOf = async (runId: string): Promise<RunStatus> =>
    (await admin<{ run: { status: RunStatus } }>('GET', `/runs/${runId}`)).run.status;
  return {
    ...system,
    caller: api.caller,
    admin,
    statusOf,
    begin: async (text, status) => {
      const begun = await createAcknowledged(api.caller, text);
      const isSo = async () => (await statusOf(begun.runId)) === status;
      await eventually(isSo, { what: `the Run of “${text}” is ${status}` });
      return begun;
    },
  };
}

/** A Thread of many entries, for which no worker may run yet. */
export async function writeLongThread(world: ConsoleWorld): Promise<Acknowledged> {
  const run = await AppendedRun.start(world, world.caller);
  await run.write(...Array.from({ length: LONG }, (_, i) => `Line ${i + 1} of a long answer. `));
  await run.complete();
  await run.close();
  const { thread } = await world.admin<{ thread: { lastRunId: string } }>('GET', `/threads/${run.threadId}`);
  return { threadId: run.threadId, runId: thread.lastRunId, text: 'write' };
}

/** One Run of each kind, and an Agent of two versions. */
export async function fillWorld(world: ConsoleWorld, long: Acknowledged): Promise<ConsoleRuns> {
  await publishAgentVersion(world.database.pool, world.agentId, {
    ...{ name: 'echo', harness: { name: 'echo', pauseMs: 20 } },
    ...MANIFEST,
  });
  const [completed, failed, waiting, running, cancelled] = await Promise.all([
    world.begin('/think 200 /tool /artifact Forecast of the rain for next week', 'completed'),
    world.begin('/fail-retryable Where is my order 4711?', 'failed'),
    world.begin('/confirm 2 Tell the customer that the parcel is late', 'waiting_input'),
    world.begin('/pause 1s /pieces 9999 Read the whole book to me', 'running'),
    world.begin('/pause 1s /pieces 9999 Count the stars', 'running'),
  ]);
  await world.admin('POST', `/runs/${cancelled.runId}/cancel`);
  return { completed, failed, waiting, running, cancelled, long };
}
