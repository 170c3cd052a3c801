import { join } from 'node:path';
import { findFreePort } from '#platform';
import { measureTurns } from '#testing';
import { callTool, closeAll, contextOf, listening, openServers, failedCall } from './mcp-servers.testing.ts';

// Real: servers that send more than anyone asked for, over both transports.

const SCRIPT = join(import.meta.dirname, 'flooding-server.testing.mjs');
const DONE = { text: 'done', isError: false };
const LOST = failedCall('lost', /^The outcome is unknown/);
const TOO_LARGE = failedCall('too_large', /sent too much/);
const UNREADABLE = {
  text: expect.stringMatching(/^(\[a part that cannot be read\]\n){1000}\[\d+ more parts were left out/) as string,
  isError: false,
};

type Kind = 'stdio' | 'http';

async function serverOf(kind: Kind, env: Record<string, string> = {}) {
  if (kind === 'stdio') return { name: 'flood', command: process.execPath, args: [SCRIPT], env };
  const { port } = await listening(SCRIPT, ['http'], env, await findFreePort());
  return { name: 'flood', url: `http://127.0.0.1:${port}/` };
}

afterEach(closeAll);

describe('a server that floods its connection during a call', () => {
  it.each<[Kind, string, object]>([
    ['stdio', 'newlines', DONE],
    ['stdio', 'words', LOST],
    ['stdio', 'notices', TOO_LARGE],
    ['stdio', 'some_words', DONE],
    ['stdio', 'some_notices', DONE],
    ['stdio', 'blocks', UNREADABLE],
    ['stdio', 'audience', DONE],
    ['http', 'newlines', TOO_LARGE],
    ['http', 'words', TOO_LARGE],
    ['http', 'notices', TOO_LARGE],
    ['http', 'some_words', DONE],
    ['http', 'some_notices', DONE],
    ['http', 'batch', LOST],
    ['http', 'blocks', UNREADABLE],
    ['http', 'audience', DONE],
  ])('takes short turns only: %s, %s', async (kind, tool, expected) => {
    const { servers } = openServers({ endMs: 100 });
    const tools = await servers.tools(contextOf([await serverOf(kind)]));
    await measureTurns(async () => {
      expect(await callTool(tools, `flood__${tool}`)).toEqual(expected);
    });
  });
});

it('lists its tools although a call on the same connection is flooded', async () => {
  const { servers } = openServers({ endMs: 100 });
  const context = contextOf([await serverOf('http', { TOGETHER: '2' })]);
  const tools = await servers.tools(context);
  // Ends the first connection, so that the next list and the next call share a new one.
  expect(await callTool(tools, 'flood__newlines')).toEqual(TOO_LARGE);
  const [listed, result] = await Promise.all([servers.tools(context), callTool(tools, 'flood__newlines')]);
  expect([listed.length, result]).toEqual([tools.length, TOO_LARGE]);
});

describe('a server that lists tools that are none', () => {
  it.each<[Kind]>([['stdio'], ['http']])('takes short turns only: %s', async (kind) => {
    const server = await serverOf(kind, { LIST: 'bad' });
    await measureTurns(async () => {
      const { servers } = openServers({ endMs: 100 });
      expect(await servers.tools(contextOf([server]))).toEqual([]);
    });
  });

  it('is not refused for what nobody reads of a tool', async () => {
    const server = await serverOf('stdio', { LIST: 'icons' });
    await measureTurns(async () => {
      const { servers } = openServers({ endMs: 100 });
      expect(await servers.tools(contextOf([server]))).toMatchObject([{ name: 'flood__a' }]);
    });
  });
});
