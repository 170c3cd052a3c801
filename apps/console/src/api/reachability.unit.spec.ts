import { unreachableSinceNow, noteAnswer } from './reachability.ts';

beforeEach(() => jest.useFakeTimers({ now: 0 }));
afterEach(() => {
  noteAnswer(200);
  jest.runAllTimers();
  jest.useRealTimers();
});

test.each([0, 502, 504])('%i says that it is away, since then', (status) => {
  jest.setSystemTime(7);
  noteAnswer(status);
  jest.setSystemTime(9);
  noteAnswer(status);
  expect(unreachableSinceNow()).toBe(7);
});

test.each([200, 401, 404, 429, 503])('%i is an answer of its own', (status) => {
  noteAnswer(status);
  expect(unreachableSinceNow()).toBeNull();
});

test('it is back when it has answered for a second, and stays away while every other request fails', () => {
  for (let i = 0; i < 20; i++) {
    noteAnswer(i % 2 === 0 ? 502 : 200);
    jest.advanceTimersByTime(200);
    expect(unreachableSinceNow()).toBe(0);
  }
  noteAnswer(200);
  jest.advanceTimersByTime(799);
  expect(unreachableSinceNow()).toBe(0);
  jest.advanceTimersByTime(1);
  expect(unreachableSinceNow()).toBeNull();
});
