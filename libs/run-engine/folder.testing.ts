import { ulid } from 'ulid';
import type { FolderFile, StepContext, StepEvent, ThreadFiles, ToolContext, ToolResult } from '#agents';
import type { World } from './engine.testing.ts';
import type { RunEngine } from './run-engine.ts';
import { message, ok, scriptedHarness, tool } from './scripted-harness.testing.ts';

/** For specs: Runs that do one thing in their folder, each on a separate worker. */
export type Act = (context: ToolContext) => Promise<ToolResult | void>;
export type Said = Awaited<ReturnType<World['say']>>;

async function* actOnce({ transcript }: StepContext): AsyncGenerator<StepEvent> {
  yield transcript.at(-1)?.role === 'user' ? message('', 'act') : message('done');
}

/** Makes a worker whose harness calls one tool in each Run. Throws if the engine calls it more than once. */
export async function workerThat(world: World, act: Act): Promise<Pick<RunEngine, 'executeJob'>> {
  let acted = 0;
  const execute = async (context: ToolContext): Promise<ToolResult> => {
    // Otherwise an engine that loses the result would call it forever.
    if (++acted > 1) throw new Error('the tool has acted already');
    return (await act(context)) ?? ok('done');
  };
  const acts = tool('act', execute, { idempotent: true });
  const { engine } = await world.makeWorker({ harnesses: [scriptedHarness(actOnce, [acts])] });
  return {
    executeJob: async (job) => {
      await engine.executeJob(job);
      expect(acted).toBe(1);
    },
  };
}

/** Executes the Thread's first Run. */
export async function runThat(world: World, said: Said, act: Act): Promise<Said> {
  await (await workerThat(world, act)).executeJob(said.job);
  return said;
}

/** Executes a further Run of the Thread. */
export async function anotherRunThat(world: World, { threadId, message: say }: Said, act: Act): Promise<void> {
  await world.handle(threadId, say('more', ulid()));
  const job = world.jobs.findLast((last) => last.threadId === threadId)!;
  await (await workerThat(world, act)).executeJob(job);
}

export const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

export const write =
  (path: string, text: string): Act =>
  async ({ files }) =>
    void (await files.write(path, bytes(text)));

export const remove =
  (path: string): Act =>
  ({ files }) =>
    files.remove(path);

export async function textOf(files: ThreadFiles, file: FolderFile): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of await files.read(file)) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

/** Returns the texts that the agent finds in the Thread's next Run, by path. */
export async function folderOf(world: World, said: Said): Promise<Record<string, string>> {
  let found: Record<string, string> = {};
  await anotherRunThat(world, said, async ({ files }) => {
    const texts = (await files.list()).map(async (file) => [file.path, await textOf(files, file)] as const);
    found = Object.fromEntries(await Promise.all(texts));
  });
  return found;
}
