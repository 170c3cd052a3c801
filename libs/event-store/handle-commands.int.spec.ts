import { decodeTime } from 'ulid';
import type { Command } from '#domain';
import { verify } from '#projections';
import { fixedClock } from '#testing';
import { nameOf } from './append.ts';
import { absentThread, CommandHandler, type Commit, type CommandResult } from './handle-commands.ts';
import {
  addMessage,
  apply,
  blockedBackends,
  idleThread,
  newRun,
  openFixture,
  openProcess,
  readAll,
  record,
  runningThread,
  tally,
  whileLocked,
  type Fixture,
  type Process,
} from './store.testing.ts';

// Real: PostgreSQL, and the pools, stores and handlers of two processes.

let on: Fixture;
let other: Process;
const commits: Commit[] = [];

beforeAll(async () => {
  on = await openFixture({ onCommit: (commit) => void commits.push(commit) });
  other = await openProcess(on.url);
});

afterAll(async () => {
  expect((await verify(on.pool)).findings).toEqual([]);
  await other.close();
  await on.close();
});

/** Sends the requests concurrently, every second one from the other process. */
const race = (requests: (i: number) => Parameters<CommandHandler['handle']>[0], times = 64): Promise<CommandResult[]> =>
  Promise.all(Array.from({ length: times }, (_, i) => (i % 2 ? other : on).handler.handle(requests(i))));

describe('concurrent commands of two processes', () => {
  test('store all of 64 messages that queue up', async () => {
    const { threadId } = await idleThread(on);
    const outcomes = await race((i) => ({ threadId, commands: [addMessage(String(i), newRun(), 'enqueue')] }));
    expect(tally(outcomes)).toEqual({ appended: 64 });
    const messages = (await readAll(on, threadId)).filter(({ type }) => type === 'message.added');
    expect(new Set(messages.map(({ data }) => (data as { text: string }).text)).size).toBe(64);
  });

  test('store one of 64 messages that need an idle Thread', async () => {
    const { threadId } = await idleThread(on);
    const outcomes = await race((i) => ({ threadId, commands: [addMessage(String(i))] }));
    expect(tally(outcomes)).toEqual({ appended: 1, thread_busy: 63 });
  });

  test('let one of 64 claims of a dispatch succeed', async () => {
    const { threadId } = await idleThread(on);
    const run = newRun();
    await apply(on.handler, { threadId, commands: [addMessage('Hello', run)] });
    const claim = (i: number): Command => ({ type: 'claim_run', runId: run.runId, dispatch: 1, holder: `worker ${i}` });
    const outcomes = await race((i) => ({ threadId, commands: [claim(i)] }));
    expect(tally(outcomes)).toEqual({ appended: 1, stale_dispatch: 63 });
  });
});

describe('a command handler', () => {
  test('loads a stale copy again and decides again', async () => {
    const { thread, fence } = await runningThread(on);
    const { threadId } = thread;
    await apply(other.handler, { threadId, commands: [record(fence)] });
    const { events } = await apply(on.handler, { threadId, from: thread, fence, commands: [record(fence)] });
    expect(events.map(({ version }) => version)).toEqual([thread.version + 2]);
  });

  test('does not refuse because of a stale copy', async () => {
    const { thread, fence } = await runningThread(on);
    const { threadId } = thread;
    await apply(other.handler, { threadId, commands: [{ type: 'complete_run', ...fence, finalOutput: null }] });
    expect(nameOf(await on.handler.handle({ threadId, from: thread, commands: [addMessage()] }))).toBe('appended');
    const rejection = { rejected: 'thread_missing', message: '' } as const;
    const commands = ({ version }: typeof thread) =>
      version === 0 ? rejection : [{ type: 'interrupt', runId: null, by: null } as const];
    expect(nameOf(await on.handler.handle({ threadId, from: absentThread(threadId), commands }))).toBe('appended');
  });

  test('refuses an old attempt once the Run is handed over or claimed again', async () => {
    const { thread, fence } = await runningThread(on);
    const { threadId } = thread;
    await apply(other.handler, { threadId, commands: [{ type: 'hand_over_run', ...fence }] });
    const late = { threadId, from: thread, fence, commands: [record(fence)] };
    expect(nameOf(await on.handler.handle(late))).toBe('stale_attempt');
    const claim: Command = { type: 'claim_run', runId: fence.runId, dispatch: 2, holder: 'another' };
    await apply(other.handler, { threadId, commands: [claim] });
    expect(nameOf(await on.handler.handle(late))).toBe('stale_attempt');
  });

  test('does not reclaim a renewed lease, and does not retry', async () => {
    const { thread, fence } = await runningThread(on);
    let appends = 0;
    const store = Object.create(on.store) as typeof on.store;
    store.append = (...args) => {
      appends++;
      return on.store.append(...args);
    };
    const handler = new CommandHandler({ store, leaseMs: 10_000 });
    const reclaim: Command = { type: 'reclaim_run', ...fence, jitter: 0 };
    expect(await handler.handle({ threadId: thread.threadId, due: fence, commands: [reclaim] })).toEqual({
      outcome: 'conflict',
    });
    expect(appends).toBe(1);
  });
});

describe('one process', () => {
  test('runs the commands on one Thread in sequence, and does not delay other Threads', async () => {
    const [held, free] = [await idleThread(on), await idleThread(on)];
    const first = await whileLocked(on.admin, held.threadId, async () => {
      const waiting = [1, 2, 3].map(() =>
        on.handler.handle({ threadId: held.threadId, commands: [addMessage('Hello', newRun(), 'enqueue')] }),
      );
      expect(await blockedBackends(on.admin, 1)).toHaveLength(1);
      expect(nameOf(await on.handler.handle({ threadId: free.threadId, commands: [addMessage()] }))).toBe('appended');
      return waiting;
    });
    expect(tally(await Promise.all(first))).toEqual({ appended: 3 });
  });

  test('continues with the next command after a failure', async () => {
    const { thread, fence } = await runningThread(on);
    const { threadId } = thread;
    const nul = { type: 'assistant.text_added' as const, data: { text: '\0' } };
    const failing = on.handler.handle({ threadId, commands: [record(fence, nul)] });
    const following = on.handler.handle({ threadId, commands: [record(fence)] });
    await expect(failing).rejects.toThrow();
    expect(nameOf(await following)).toBe('appended');
  });
});

describe('clocks', () => {
  test('that step back or differ do not make ids and times go back', async () => {
    const clock = fixedClock(Date.parse('2026-11-21T12:00:00Z'));
    const ahead = new CommandHandler({ store: on.store, leaseMs: 1, now: () => clock.now() + 600_000 });
    const behind = new CommandHandler({ store: other.store, leaseMs: 1, now: () => clock.now() - 600_000 });
    const { threadId } = await idleThread({ ...on, handler: ahead });
    for (let i = 0; i < 6; i++) {
      const handler = i % 2 ? ahead : behind;
      await apply(handler, { threadId, commands: [addMessage(String(i), newRun(), 'enqueue')] });
      if (i === 2) clock.advance(-3_600_000);
    }
    const events = await readAll(on, threadId);
    const ids = events.map(({ id }) => id);
    const times = events.map(({ occurredAt }) => occurredAt);
    expect(ids).toEqual([...new Set(ids)].sort());
    expect(times).toEqual([...times].sort());
    expect(times.at(-1)).toBe('2026-11-21T12:10:00.000Z');
  });

  test('that are ahead in another process do not affect other Threads', async () => {
    const clock = fixedClock(Date.parse('2026-11-21T12:00:00Z'));
    const ahead = new CommandHandler({ store: other.store, leaseMs: 1, now: () => clock.now() + 600_000 });
    const ours = new CommandHandler({ store: on.store, leaseMs: 1, now: clock.now });
    const { threadId } = await idleThread({ ...on, handler: ahead });
    await apply(ours, { threadId, commands: [addMessage()] });
    const { lastEventId } = await idleThread({ ...on, handler: ours });
    expect(decodeTime(lastEventId ?? '')).toBe(clock.now());
  });
});

test('listeners receive each commit once, with the Runs to enqueue, and nothing else', async () => {
  commits.length = 0;
  const { threadId } = await idleThread(on);
  const run = newRun();
  await apply(on.handler, { threadId, commands: [addMessage('Hello', run)] });
  await on.handler.handle({ threadId, commands: [addMessage()] });
  await on.handler.handle({ threadId, commands: [{ type: 'unarchive' }] });
  expect(commits.map(({ after, jobs }) => ({ version: after.version, jobs }))).toEqual([
    { version: 1, jobs: [] },
    { version: 4, jobs: [{ runId: run.runId, threadId, dispatch: 1 }] },
  ]);
});
