import { makeWorld, type World } from './engine.testing.ts';

// Work that takes more than 5 ms of a turn continues in another one, and the text so far is stored meanwhile. So the
// number of appends would depend on the speed of the machine.
jest.mock('../platform/process/own-turn.ts', () => ({ ownTurn: async () => undefined, pauseIfLong: () => undefined }));

let world: World;
beforeAll(async () => {
  world = await makeWorld();
});
afterAll(() => world.close());

it('a Run of the echo agent is in the log, in two appends', async () => {
  const { engine } = await world.makeWorker();
  const { job, threadId, runId } = await world.say('hello there');
  const before = world.commits.length;
  await engine.executeJob(job);
  expect(world.commits.slice(before)).toEqual([
    'run.claimed',
    'run.started assistant.text_added assistant.message_added usage.recorded run.completed thread.status_entered',
  ]);
  const log = await world.log(threadId);
  expect(log.map(({ type, content }) => `${type}: ${content}`)).toEqual([
    'user.message: hello there',
    'session.status: RUNNING',
    `run.started: ${runId}`,
    'agent.message.delta: You said: hello there',
    'usage.updated: {"inputTokens":2,"outputTokens":4}',
    `run.completed: ${runId}`,
    'session.status: IDLE',
  ]);
  const { status, final_output } = await world.summary(runId);
  expect({ status, final_output }).toEqual({
    status: 'completed',
    final_output: { text: 'You said: hello there', warnings: [] },
  });
  expect((await world.pool.query('select from run_work where run_id = $1', [runId])).rowCount).toBe(0);
});
