import { streamLines } from './lines.ts';

const signal = new AbortController().signal;
const errorLine = (error: unknown) => ({ error: { message: (error as Error).message } });

async function* failing(lines: number) {
  for (let i = 0; i < lines; i++) yield await Promise.resolve({ i });
  throw new Error('broken');
}

async function read(items: AsyncIterable<object>): Promise<string> {
  let text = '';
  for await (const chunk of await streamLines(items, { signal, errorLine })) text += String(chunk);
  return text;
}

test('rejects for a failure before the first line, and writes a later one as the last line', async () => {
  await expect(streamLines(failing(0), { signal, errorLine })).rejects.toThrow('broken');
  expect(await read(failing(2))).toBe('{"i":0}\n{"i":1}\n{"error":{"message":"broken"}}\n');
});

test('writes a large line as the same JSON as a small one', async () => {
  const large = { text: 'é"\n'.repeat(100_000) };
  async function* lines() {
    yield await Promise.resolve(large);
    yield { i: 1 };
  }
  expect(await read(lines())).toBe(`${JSON.stringify(large)}\n{"i":1}\n`);
});

describe('with a fake clock', () => {
  beforeEach(() => jest.useFakeTimers());
  afterEach(() => jest.useRealTimers());

  test('an answer starts before its late first line, and sends empty lines during silence', async () => {
    let sendFirst: () => void = () => undefined;
    async function* late() {
      await new Promise<void>((resolve) => (sendFirst = resolve));
      yield { late: true };
    }
    const answer = streamLines(late(), { signal, errorLine });
    await jest.advanceTimersByTimeAsync(1_000);
    const lines = (await answer)[Symbol.asyncIterator]();
    expect(await lines.next()).toEqual({ done: false, value: '\n' });
    const silence = lines.next();
    await jest.advanceTimersByTimeAsync(15_000);
    expect(await silence).toEqual({ done: false, value: '\n' });
    sendFirst();
    expect(await lines.next()).toEqual({ done: false, value: '{"late":true}\n' });
  });
});

test('releases the items when the reader disconnects before the first line', async () => {
  let isReleased = false;
  async function* items() {
    try {
      for (;;) yield await Promise.resolve({});
    } finally {
      isReleased = true;
    }
  }
  const lines = await streamLines(items(), { signal, errorLine });
  await new Promise((resolve) => lines.once('close', resolve).destroy());
  await new Promise(setImmediate);
  expect(isReleased).toBe(true);
});

test.each([
  ['an aborted answer gives the reason in its last line', new Error('it stops'), '{"error":{"message":"it stops"}}\n'],
  ['an answer without a reader ends without an error line', undefined, ''],
])('%s', async (_, reason, last) => {
  const ending = new AbortController();
  async function* items() {
    yield await Promise.resolve({ i: 0 });
    ending.abort(reason);
  }
  const lines = await streamLines(items(), { signal: ending.signal, errorLine });
  let text = '';
  for await (const chunk of lines) text += chunk as string;
  expect(text).toBe(`{"i":0}\n${last}`);
});
