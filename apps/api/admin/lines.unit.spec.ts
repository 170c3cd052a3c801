import { linesAsTheyCome } from './lines.ts';

const signal = new AbortController().signal;
const lastWords = (error: unknown) => ({ error: { message: (error as Error).message } });

async function* failing(lines: number) {
  for (let i = 0; i < lines; i++) yield await Promise.resolve({ i });
  throw new Error('broken');
}

async function read(items: AsyncIterable<object>): Promise<string> {
  let text = '';
  for await (const chunk of await linesAsTheyCome(items, { signal, lastWords })) text += String(chunk);
  return text;
}

test('what fails before the first line is no answer; what fails later is the last line', async () => {
  await expect(linesAsTheyCome(failing(0), { signal, lastWords })).rejects.toThrow('broken');
  expect(await read(failing(2))).toBe('{"i":0}\n{"i":1}\n{"error":{"message":"broken"}}\n');
});

test('a large line is the JSON that it would be anyway', async () => {
  const large = { text: 'é"\n'.repeat(100_000) };
  async function* lines() {
    yield await Promise.resolve(large);
    yield { i: 1 };
  }
  expect(await read(lines())).toBe(`${JSON.stringify(large)}\n{"i":1}\n`);
});

describe('with the clock in hand', () => {
  beforeEach(() => jest.useFakeTimers());
  afterEach(() => jest.useRealTimers());

  test('a late first line does not hold the answer back, and silence is broken by empty lines', async () => {
    let goOn: () => void = () => undefined;
    async function* late() {
      await new Promise<void>((resolve) => (goOn = resolve));
      yield { late: true };
    }
    const answer = linesAsTheyCome(late(), { signal, lastWords });
    await jest.advanceTimersByTimeAsync(1_000);
    const lines = (await answer)[Symbol.asyncIterator]();
    expect(await lines.next()).toEqual({ done: false, value: '\n' });
    const silence = lines.next();
    await jest.advanceTimersByTimeAsync(15_000);
    expect(await silence).toEqual({ done: false, value: '\n' });
    goOn();
    expect(await lines.next()).toEqual({ done: false, value: '{"late":true}\n' });
  });
});

test('the items are let go of when nobody reads them, also before the first was asked for', async () => {
  let isLetGo = false;
  async function* items() {
    try {
      for (;;) yield await Promise.resolve({});
    } finally {
      isLetGo = true;
    }
  }
  const lines = await linesAsTheyCome(items(), { signal, lastWords });
  await new Promise((resolve) => lines.once('close', resolve).destroy());
  await new Promise(setImmediate);
  expect(isLetGo).toBe(true);
});

test.each([
  ['what was cut short says why in its last line', new Error('it stops'), '{"error":{"message":"it stops"}}\n'],
  ['whoever has gone is told nothing', undefined, ''],
])('%s', async (_, reason, last) => {
  const ending = new AbortController();
  async function* items() {
    yield await Promise.resolve({ i: 0 });
    ending.abort(reason);
  }
  const lines = await linesAsTheyCome(items(), { signal: ending.signal, lastWords });
  let text = '';
  for await (const chunk of lines) text += chunk as string;
  expect(text).toBe(`{"i":0}\n${last}`);
});
