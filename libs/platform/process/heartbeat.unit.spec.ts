import { startHeartbeat } from './heartbeat.ts';

beforeEach(() => void jest.useFakeTimers());
afterEach(() => void jest.useRealTimers());

test('a heartbeat skips beats while one is in progress, and beats no more after stop()', async () => {
  let end = (): void => undefined;
  let beats = 0;
  const heartbeat = await startHeartbeat(() => {
    beats++;
    return beats === 2 ? new Promise((resolve) => (end = resolve)) : Promise.resolve();
  });
  await jest.advanceTimersByTimeAsync(12_000);
  expect(beats).toBe(2);
  end();
  await jest.advanceTimersByTimeAsync(3_000);
  expect(beats).toBe(3);
  await heartbeat.stop();
  await jest.advanceTimersByTimeAsync(12_000);
  expect(beats).toBe(3);
});
