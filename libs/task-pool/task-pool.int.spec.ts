import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { eventually } from '#testing';
import { type Logger } from '#platform';
import { PoolChild } from './pool-child.ts';
import { usageOf } from './process-usage.ts';
import { TaskFailed, type Task, type TaskLimits } from './task.ts';
import { TaskPool } from './task-pool.ts';
import { metrics } from './metrics.ts';

// Real: the child processes, their limits, and what runs away in them.

const MEBIBYTE = 1024 * 1024;
const tasks = join(import.meta.dirname, 'tasks.testing.mjs');
const logger = { warn: jest.fn(), debug: jest.fn() } as unknown as Logger;

interface Input {
  does: string;
  [more: string]: unknown;
}

/** What a child tells of itself. */
interface Described {
  env: string[];
  priority: number;
  killedFirst: string;
  files: string[];
}

const task = (limits: Partial<TaskLimits> = {}): Task<Input, unknown> => ({
  name: 'misbehave',
  module: tasks,
  limits: { wallMs: 20_000, cpuMs: 10_000, ...limits },
});

const open: TaskPool[] = [];
const openPool = (options: Partial<ConstructorParameters<typeof TaskPool>[0]> = {}): TaskPool => {
  const pool = new TaskPool({ size: 2, memoryBytes: 160 * MEBIBYTE, logger, ...options });
  open.push(pool);
  return pool;
};
afterEach(async () => {
  for (const pool of open.splice(0)) await pool.close();
});

const one = { organizationId: 'one' };
const input = (does: string, more: object = {}) => ({ value: { does, ...more } });
const reasonOf = (failing: Promise<unknown>): Promise<string> =>
  failing.then(
    () => 'none',
    (error: unknown) => (error instanceof TaskFailed ? error.reason : String(error)),
  );
const isAlive = (pid: number): boolean => usageOf(pid) !== null;

describe('a task', () => {
  it('gets its input, answers values and bytes, and finds the child of the call before it', async () => {
    const pool = openPool();
    const bytes = new Uint8Array(3 * MEBIBYTE).fill(7);
    bytes[0] = 1;
    const first = await pool.run(task(), { value: { does: 'echo', text: 'ä' }, bytes }, one);
    expect(first.value).toMatchObject({ text: 'ä', length: bytes.byteLength });
    expect(first.bytes?.at(-1)).toBe(1);
    const second = await pool.run(task(), async () => input('echo', { text: 'b' }), one);
    expect(second.value).toEqual({ text: 'b', length: 0, pid: (first.value as { pid: number }).pid });
  });

  it('runs at low priority, without environment and inherited descriptors', async () => {
    const { value } = await openPool().run(task(), input('describe'), one);
    const { env, priority, killedFirst, files } = value as Described;
    expect([env, priority, killedFirst]).toEqual([[], 10, '1000']);
    const named = files.filter((file) => !/anon_inode|:pipe:|\/proc/.test(file));
    expect(named).toEqual(['0:socket:[N]', '1:/dev/null', '2:socket:[N]', '3:socket:[N]']);
  });

  it.each<[string, string, Partial<TaskLimits>]>([
    ['spin', 'cpu', { cpuMs: 300 }],
    ['spin', 'time', { wallMs: 300 }],
    ['wait', 'time', { wallMs: 300 }],
    ['allocateBuffers', 'memory', {}],
    ['allocateObjects', 'memory', {}],
    ['exit', 'crashed', {}],
    ['beKilled', 'crashed', {}],
    ['fail', 'crashed', {}],
    ['unknown', 'crashed', {}],
  ])('that would %s ends: %s', async (does, reason, limits) => {
    const pool = openPool();
    const { value: before } = await metrics.poolTasks.get().then(({ values }) => ({ value: countOf(values, reason) }));
    expect(await reasonOf(pool.run(task(limits), input(does), one))).toBe(reason);
    expect(countOf((await metrics.poolTasks.get()).values, reason)).toBe(before + 1);
    expect(await pool.run(task(), input('echo', { text: 'next' }), one)).toMatchObject({ value: { text: 'next' } });
  });

  it.each([
    ['4 GiB of bytes', 'memory', { messageBytes: 1, bytes: 2 ** 32 - 1 }],
    ['4 GiB of values', 'memory', { messageBytes: 2 ** 32 - 1, bytes: 0 }],
    ['a value that is none', 'crashed', { messageBytes: 8, bytes: 0 }],
  ])('whose child announces %s fails at once: %s', async (_, reason, announced) => {
    const pool = openPool();
    const call = pool.run(task({ wallMs: 5_000 }), input('announce', { ...announced, zeros: 8 }), one);
    expect(await reasonOf(call)).toBe(reason);
    expect(await pool.run(task(), input('echo', { text: 'next' }), one)).toMatchObject({ value: { text: 'next' } });
  });

  it('fails alone: a call beside it is answered', async () => {
    const pool = openPool();
    const spinning = reasonOf(pool.run(task({ cpuMs: 1_000 }), input('spin'), one));
    const other = await pool.run(task(), input('echo', { text: 'x' }), { organizationId: 'two' });
    expect(other.value).toMatchObject({ text: 'x' });
    expect(await spinning).toBe('cpu');
  });

  it('leaves no memory to the next call', async () => {
    const pool = openPool();
    const { value: large } = await pool.run(task(), input('keep', { mebibytes: 60 }), one);
    const { value: next } = await pool.run(task(), input('keep', { mebibytes: 1 }), one);
    expect(next).not.toBe(large);
  });

  it('whose input cannot be loaded fails with that error, and the child stays', async () => {
    const pool = openPool();
    const { value: pid } = await pool.run(task(), input('keep', { mebibytes: 1 }), one);
    const load = async (): Promise<never> => {
      throw new Error('the file is gone');
    };
    await expect(pool.run(task(), load, one)).rejects.toThrow('the file is gone');
    expect(await pool.run(task(), input('keep', { mebibytes: 1 }), one)).toMatchObject({ value: pid });
  });

  it('is killed when its signal aborts', async () => {
    const pool = openPool();
    const stopping = new AbortController();
    const { value: pid } = await pool.run(task(), input('keep', { mebibytes: 1 }), one);
    const spinning = pool.run(task(), input('spin'), { ...one, signal: stopping.signal });
    stopping.abort(new Error('stopped'));
    await expect(spinning).rejects.toThrow('stopped');
    await eventually(() => !isAlive(pid as number), { what: 'the child ends' });
  });
});

describe('the children', () => {
  it('refuse the call for which none can be started, and serve the next one', async () => {
    const startChild = jest
      .fn((bytes: number) => new PoolChild(bytes))
      .mockImplementationOnce(() => {
        throw new Error('too many open files');
      });
    const pool = openPool({ startChild });
    expect(await reasonOf(pool.run(task(), input('echo', { text: 'a' }), one))).toBe('overloaded');
    expect(await pool.run(task(), input('echo', { text: 'b' }), one)).toMatchObject({ value: { text: 'b' } });
  });

  it('are shared: one organization has at most half, and another need not wait for it', async () => {
    const pool = openPool();
    const stopping = new AbortController();
    const signal = stopping.signal;
    const flood = Array.from({ length: 5 }, () => reasonOf(pool.run(task(), input('wait'), { ...one, signal })));
    const other = await pool.run(task(), input('echo', { text: 'x' }), { organizationId: 'two' });
    expect(other.value).toMatchObject({ text: 'x' });
    stopping.abort(new Error('stopped'));
    expect(await Promise.all(flood)).toEqual(Array(5).fill('Error: stopped'));
  });

  it('give a newcomer the first child that is free, if two organizations hold all of them', async () => {
    const pool = openPool();
    let ended = 0;
    const hostile = ['a', 'b'].flatMap((organizationId) =>
      Array.from({ length: 4 }, async () => {
        const reason = await reasonOf(pool.run(task({ wallMs: 500 }), input('spin'), { organizationId }));
        ended++;
        return reason;
      }),
    );
    let endedBefore = NaN;
    // A call loads its input as soon as it has a child, which may still be starting.
    const load = async () => {
      endedBefore = ended;
      return input('echo', { text: 'x' });
    };
    const other = await pool.run(task(), load, { organizationId: 'c' });
    expect(other.value).toMatchObject({ text: 'x' });
    // Each of the two had one call under way, and no second one came before the newcomer's.
    expect(endedBefore).toBeLessThanOrEqual(2);
    expect(await Promise.all(hostile)).toEqual(Array(8).fill('time'));
  });

  it('refuse a call when too many of its organization wait', async () => {
    const pool = openPool({ maxWaiting: 2 });
    const stopping = new AbortController();
    const { signal } = stopping;
    const taken = [1, 2, 3].map(() => reasonOf(pool.run(task(), input('wait'), { ...one, signal })));
    expect(await reasonOf(pool.run(task(), input('wait'), { ...one, signal }))).toBe('overloaded');
    stopping.abort(new Error('stopped'));
    await Promise.all(taken);
    expect(await pool.run(task(), input('echo'), one)).toMatchObject({ value: { length: 0 } });
  });

  it('end when they are idle, and start again', async () => {
    const pool = openPool({ idleMs: 50 });
    const { value: pid } = await pool.run(task(), input('keep', { mebibytes: 1 }), one);
    await eventually(() => !isAlive(pid as number), { what: 'the child ends' });
    expect(await pool.run(task(), input('echo'), one)).toMatchObject({ value: { length: 0 } });
  });

  it('end with the pool, whose calls fail', async () => {
    const pool = openPool({ size: 1 });
    const running = reasonOf(pool.run(task(), input('spin'), one));
    const waiting = reasonOf(pool.run(task(), input('echo'), one));
    await pool.close();
    expect(await running).toBe('crashed');
    expect(await waiting).toBe('overloaded');
    expect(await reasonOf(pool.run(task(), input('echo'), one))).toBe('overloaded');
  });

  it.each(['spin', 'wait for a request'])('end with a parent that is killed while they %s', async (does) => {
    // Uses the built files, because a parent that is a process of its own cannot run the sources.
    const built = join(import.meta.dirname, '../../dist/libs/task-pool/index.js');
    const program = `
      import { TaskPool } from ${JSON.stringify(built)};
      const logger = { warn: (about) => console.error(about) };
      const pool = new TaskPool({ size: 2, memoryBytes: ${160 * MEBIBYTE}, logger });
      const task = { name: 'misbehave', module: ${JSON.stringify(tasks)}, limits: { wallMs: 60_000, cpuMs: 60_000 } };
      const { value: pid } = await pool.run(task, { value: { does: 'keep', mebibytes: 1 } }, { organizationId: 'one' });
      console.log(pid);
      if (${JSON.stringify(does)} === 'spin') void pool.run(task, { value: { does: 'spin' } }, { organizationId: 'one' });
      setInterval(() => undefined, 1_000);`;
    const parent = spawn(process.execPath, ['--input-type=module', '-e', program], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const [line] = (await Promise.race([once(parent.stdout, 'data'), once(parent, 'exit')])) as unknown[];
    const pid = Number(String(line));
    const cpuMs = usageOf(pid)?.cpuMs ?? 0;
    if (does === 'spin') await eventually(() => (usageOf(pid)?.cpuMs ?? 0) > cpuMs + 50, { what: 'the child spins' });
    parent.kill('SIGKILL');
    await eventually(() => !isAlive(pid), { what: 'the child ends' });
  });
});

const countOf = (values: { labels: object; value: number }[], outcome: string): number =>
  values.find(({ labels }) => (labels as { outcome: string }).outcome === outcome)?.value ?? 0;
