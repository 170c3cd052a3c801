import { setImmediate } from 'node:timers/promises';
import { eventually, measureTurns } from '#testing';
import { StdioTransport, type StdioServer } from './stdio-transport.ts';

// Real: a process that writes messages.

const LIMITS = { memoryBytes: 2 ** 30, cpuMs: 60_000 };
const FOR_EVER = 'setInterval(() => undefined, 1_000);';

/** Runs a program of JavaScript. */
async function start(program: string, more: Partial<StdioServer> = {}) {
  const errors: Error[] = [];
  const messages: unknown[] = [];
  const transport = new StdioTransport({
    launch: async () => ({
      file: process.execPath,
      args: ['-e', program],
      env: {},
      cwd: '/',
      piped: null,
      limits: LIMITS,
    }),
    maxBytes: () => 1_000_000,
    onBytes: () => undefined,
    onMessages: () => undefined,
    onListPage: () => undefined,
    onHeld: () => undefined,
    endMs: 1_000,
    onLog: () => undefined,
    ...more,
  });
  transport.onerror = (error) => errors.push(error);
  transport.onmessage = (message) => messages.push(message);
  const closed = new Promise<void>((resolve) => (transport.onclose = resolve));
  await transport.start();
  return { transport, errors, messages, closed };
}

/** A program that writes a text so many times, and ends or goes on after that. */
const writing = (text: string, count: number, then = ''): string =>
  `process.stdout.write(${JSON.stringify(text)}.repeat(${count}), () => { ${then} });`;

const NOTICE = JSON.stringify({ jsonrpc: '2.0', method: 'notifications/a' });

it('holds and reads nothing more once its output broke a limit', async () => {
  const message = `{ "jsonrpc": "2.0", "method": "notifications/a", "params": { "text": "${'x'.repeat(300_000)}" } }`;
  const held: number[] = [];
  let isFull = false;
  const { errors, messages, closed } = await start(
    `const message = ${JSON.stringify(message.slice(0, 100))} + 'x'.repeat(300_000) + '" } }\\n';
     process.stdout.write(message.repeat(10) + message.slice(0, -1)); ${FOR_EVER}`,
    {
      onHeld: (bytes) => {
        held.push(bytes);
        isFull ||= bytes > 200_000 && held.filter((value) => value > 200_000).length > 3;
        if (isFull && bytes > 0) throw new Error('no room');
      },
    },
  );
  await eventually(() => errors.length > 0, { what: 'the limit is broken' });
  const received = messages.length;
  const heldAtEnd = held.length;
  await closed;
  for (let i = 0; i < 20; i++) await setImmediate();
  expect(errors.map(({ message: text }) => text)).toEqual(['no room']);
  expect(held.slice(heldAtEnd).filter((bytes) => bytes > 0)).toEqual([]);
  expect(messages).toHaveLength(received);
});

it('reads nothing more of a piece once a message of it broke a limit', async () => {
  let seen = 0;
  const onMessages = (): void => {
    if (++seen > 10) throw new Error('enough');
  };
  const { errors, messages, closed } = await start(writing(`${NOTICE}\n`, 1_000, FOR_EVER), { onMessages });
  await closed;
  expect(errors.map(({ message }) => message)).toEqual(['enough']);
  expect(messages).toHaveLength(10);
});

it('reads all that a process wrote before it ended', async () => {
  const { errors, messages, closed } = await start(writing(`${NOTICE}\n`, 20_000));
  await closed;
  expect(errors).toEqual([]);
  expect(messages).toHaveLength(20_000);
});

describe('a process that floods its output', () => {
  it.each<[string, string, object]>([
    ['empty lines', '\n'.repeat(32), { messages: 0, errors: [] }],
    ['messages', `${NOTICE}\n`, { messages: 65_536, errors: [] }],
  ])('is read in short turns: %s', async (_what, text, expected) => {
    await measureTurns(async () => {
      const { errors, messages, closed } = await start(writing(text, 65_536));
      await closed;
      expect({ messages: messages.length, errors }).toMatchObject(expected);
    });
  });

  it('is ended after 100 lines that are no messages', async () => {
    await measureTurns(async () => {
      const { errors, closed } = await start(writing('x\n', 2 ** 20, FOR_EVER));
      await closed;
      expect(errors).toHaveLength(101);
      expect(errors.at(-1)?.message).toMatch(/too many lines that are not JSON-RPC messages/);
    });
  });

  it('may print so many lines again after a request', async () => {
    const program = `
      process.stdout.write('x\\n'.repeat(100) + '${NOTICE}\\n');
      process.stdin.once('data', () => process.stdout.write('x\\n'.repeat(100) + '${NOTICE}\\n')); ${FOR_EVER}`;
    const { transport, messages, errors } = await start(program);
    await eventually(() => messages.length === 1, { what: 'it has begun' });
    await transport.send({ jsonrpc: '2.0', id: 1, method: 'ping' });
    await eventually(() => messages.length === 2, { what: 'it has answered' });
    expect(errors).toHaveLength(200);
    await transport.close();
  });

  it('has 1,000 lines of its standard error read, in short turns', async () => {
    let lines = 0;
    await measureTurns(async () => {
      lines = 0;
      const program = `process.stderr.write('x\\n'.repeat(${4 * 2 ** 20}))`;
      const { closed } = await start(program, { onLog: () => void (lines += 1) });
      await closed;
    });
    expect(lines).toBe(1_000);
  });
});
