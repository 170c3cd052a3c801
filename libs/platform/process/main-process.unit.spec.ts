import { ProcessLifecycle } from './main-process.ts';

let lifecycle: ProcessLifecycle;
let said: string[];

beforeEach(() => {
  lifecycle = new ProcessLifecycle();
  said = [];
});

const say = (text: string) => (): Promise<void> => Promise.resolve(void said.push(text));
const begin = (name: string) => (): Promise<string> => Promise.resolve(name);
/** Runs all callbacks that are ready. */
const settle = () => new Promise((resolve) => setImmediate(resolve));

it('stops the last first, and each only once', async () => {
  expect(await lifecycle.start(begin('database'), { stop: say('database') })).toBe('database');
  await lifecycle.start(begin('app'), { stop: say('app') });
  await Promise.all([lifecycle.end(), lifecycle.end()]);
  expect(said).toEqual(['app', 'database']);
});

it('stops the others if one fails to stop, and rejects', async () => {
  await lifecycle.start(begin('database'), { stop: say('database') });
  await lifecycle.start(begin('app'), { stop: () => Promise.reject(new Error('stuck')) });
  await expect(lifecycle.end()).rejects.toMatchObject({ errors: [{ message: 'stuck' }] });
  expect(said).toEqual(['database']);
});

it('stops a part that is still starting as soon as it has started, and never returns it', async () => {
  let started: (name: string) => void = () => undefined;
  const starting = new Promise<string>((resolve) => (started = resolve));
  const goOn = lifecycle.start(() => starting, { stop: say('stopped') }).then(say('continued'));
  const ended = lifecycle.end().then(say('ended'));
  await settle();
  expect(said).toEqual([]);
  started('database');
  await ended;
  expect(said).toEqual(['stopped', 'ended']);
  void lifecycle.start(say('began')).then(say('continued'));
  await settle();
  expect(said).toEqual(['stopped', 'ended']);
  void goOn;
});

it('does not stop a part that failed to start', async () => {
  const failed = lifecycle.start(() => Promise.reject(new Error('no')), { stop: say('stopped') });
  await expect(failed).rejects.toThrow('no');
  await lifecycle.end();
  expect(said).toEqual([]);
});

it('drains before it stops, and starts the grace period after the drain', async () => {
  jest.useFakeTimers();
  const listen = jest.spyOn(process, 'on').mockReturnThis();
  try {
    const graceMs = 100;
    const draining = new ProcessLifecycle();
    draining.endOnSignal({ info: () => undefined } as never, graceMs);
    let drained: () => void = () => undefined;
    let stopped: () => void = () => undefined;
    await draining.start(begin('app'), {
      drain: () => new Promise((resolve) => (drained = resolve)),
      stop: () => (said.push('stop'), new Promise((resolve) => (stopped = resolve))),
      abandon: () => void said.push('abandon'),
    });
    const ended = draining.end();
    await jest.advanceTimersByTimeAsync(10 * graceMs);
    expect(said).toEqual([]);
    drained();
    await jest.advanceTimersByTimeAsync(graceMs - 1);
    expect(said).toEqual(['stop']);
    await jest.advanceTimersByTimeAsync(1);
    expect(said).toEqual(['stop', 'abandon']);
    stopped();
    await ended;
  } finally {
    listen.mockRestore();
    jest.useRealTimers();
  }
});
