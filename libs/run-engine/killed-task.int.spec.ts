import { readdirSync, readFileSync } from 'node:fs';
import { FILE_TOOLS, type StepContext, type StepEvent } from '#agents';
import { eventually } from '#testing';
import { makeWorld, type World } from './engine.testing.ts';
import { scripted, scriptedHarness } from './scripted-harness.testing.ts';

// Real: an engine, PostgreSQL, bytes on disk, and children of the task pool.

const BYTES = 512 * 1024;

let world: World;
beforeAll(async () => {
  world = await makeWorld();
});
afterAll(() => world.close());

/** Returns the children of the task pools of this process. */
function poolChildren(): number[] {
  const pids = readdirSync('/proc').map(Number).filter(Number.isInteger);
  return pids.filter((pid) => {
    try {
      const isOwn = /^PPid:\s+(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] === `${process.pid}`;
      return isOwn && readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('task-pool/child-worker.mjs');
    } catch {
      return false;
    }
  });
}

it('an edit whose child process is killed fails permanently: the call has one outcome, and the Run continues', async () => {
  const many = 'a'.repeat(100_000);
  const calls = [
    { toolName: 'write_file', toolInput: { path: 'a.txt', content: 'a'.repeat(BYTES) } },
    // The search takes longer than any limit.
    { toolName: 'edit_file', toolInput: { path: 'a.txt', old_text: `${many}b${many}`, new_text: '' } },
    { toolName: 'list_files', toolInput: {} },
  ];
  async function* step({ transcript }: StepContext): AsyncGenerator<StepEvent> {
    const next = calls[transcript.filter(({ role }) => role === 'tool').length];
    yield { type: 'message', text: '', toolCalls: next === undefined ? [] : [next] };
  }
  const { engine } = await world.makeWorker({ harnesses: [scriptedHarness(step, [...FILE_TOOLS])] });
  const { threadId, runId, job } = await world.say('x', scripted);
  const before = world.jobs.length;
  const executed = engine.executeJob(job);
  const isEditing = async () => (await world.types(threadId)).filter((type) => type === 'tool.started').length === 2;
  await eventually(isEditing, { what: 'the edit has begun' });
  // Some of them are idle, and might have ended meanwhile.
  const killing = setInterval(() => poolChildren().forEach((pid) => process.kill(pid, 'SIGKILL')), 50);
  await executed.finally(() => clearInterval(killing));
  expect((await world.summary(runId)).status).toBe('completed');
  const events = await world.stream(threadId);
  const completed = events.flatMap(({ type, data }) => (type === 'tool.completed' ? [data] : []));
  expect(completed).toMatchObject([
    { toolName: 'write_file', outcome: 'ok' },
    { toolName: 'edit_file', outcome: 'error', result: 'The edit failed.' },
    { toolName: 'list_files', outcome: 'ok', result: `a.txt (${BYTES} bytes, text/plain)` },
  ]);
  expect(events.filter(({ type }) => type === 'run.claimed')).toHaveLength(1);
  expect(events.filter(({ type }) => type === 'run.requeued')).toEqual([]);
  // The Run was not enqueued for another worker.
  expect(world.jobs.slice(before)).toEqual([]);
});
