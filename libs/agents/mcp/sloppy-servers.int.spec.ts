import { join } from 'node:path';
import { findFreePort } from '#platform';
import { eventually } from '#testing';
import { callTool, closeAll, contextOf, listening, oddServer, openServers, failedCall } from './mcp-servers.testing.ts';

// Real: a process that speaks the protocol as no SDK does.

const SLOPPY = join(import.meta.dirname, 'sloppy-server.testing.mjs');

afterEach(closeAll);

async function sloppy(mode: string, more: { startMs?: number } = {}, variables: Record<string, string> = {}) {
  const { input, entries, journal } = oddServer();
  const env = { JOURNAL: journal, ...variables };
  if (mode === 'stdio') return { entries, server: { ...input, args: [SLOPPY], env, ...more } };
  const { port } = await listening(SLOPPY, [mode], env, await findFreePort());
  return { entries, server: { name: 'odd', url: `http://127.0.0.1:${port}/`, ...more } };
}

describe.each(['stdio', 'http', 'events'])('a server that is sloppy over %s', (mode) => {
  it('keeps its valid tools, and the readable parts of each result', async () => {
    const { server, entries } = await sloppy(mode);
    const noteWarnings = jest.fn(() => Promise.resolve());
    const { servers, log } = openServers({ noteWarnings });
    const tools = await servers.tools(contextOf([server]));
    const badSchema = 'The input schema of "bad" does not have the type "object".';
    const second = 'The tool "good" is listed more than once; the first is kept.';
    await eventually(() => noteWarnings.mock.calls.length === 1, { what: 'the warnings are stored' });
    expect(noteWarnings).toHaveBeenCalledWith('agent-1', 'odd', [badSchema, second, second]);
    expect(tools.map(({ name }) => name).slice(0, 2)).toEqual(['odd__good', 'odd__none']);
    expect(log()).toContain('The input schema of \\"bad\\" does not have the type');
    const text = 'the useful part\n[a part that cannot be read, video]';
    expect(await callTool(tools, 'odd__good')).toEqual({ text, isError: false });
    expect(await callTool(tools, 'odd__none')).toEqual({ text: '', isError: false });
    const refused = failedCall('refused', 'MCP error -32603: it has no code', { code: '-32603' });
    expect(await callTool(tools, 'odd__no_code')).toEqual(refused);
    expect(entries('call').map(({ name }) => name)).toEqual(['good', 'none', 'no_code']);
  });

  it('has no tools when its list of tools is null', async () => {
    const { server } = await sloppy(mode, {}, { LIST: 'null' });
    expect(await openServers().servers.tools(contextOf([server]))).toEqual([]);
  });

  it.each(['{"good": {}}', '"none"'])('is misconfigured when its list of tools is %s', async (LIST) => {
    const { server } = await sloppy(mode, {}, { LIST });
    await expect(openServers().servers.tools(contextOf([server]))).rejects.toMatchObject({
      code: 'tool_server_misconfigured',
    });
  });
});

describe.each(['http', 'events'])('an error of the protocol over %s', (mode) => {
  it('refuses a call, which is sent once with any HTTP status', async () => {
    const { server, entries } = await sloppy(mode);
    const tools = await openServers().servers.tools(contextOf([server]));
    for (const [name, code] of [
      ['refuse_400', -32602],
      ['refuse_404', -32001],
      ['refuse_500', -32603],
    ] as const) {
      const text = `MCP error ${code}: not with ${name.slice(-3)}`;
      expect(await callTool(tools, `odd__${name}`)).toEqual(
        failedCall('refused', text, { status: Number(name.slice(-3)) }),
      );
    }
    expect(entries('call')).toHaveLength(3);
    // By the protocol a session is over after 404, so the last call had another.
    expect(entries('initialize')).toHaveLength(2);
  });

  it.each([
    ['once', '1', { good: true }],
    ['again and again', '100', { code: 'tool_server_unavailable' }],
  ])('that says %s that the session is lost makes a list be asked for in a new one', async (_what, LOST_LISTS, is) => {
    const { server, entries } = await sloppy(mode, {}, { LOST_LISTS });
    const read = openServers().servers.tools(contextOf([server]));
    const found = read.then((tools) => ({ good: tools.some(({ name }) => name === 'odd__good') }));
    expect(await found.catch((error: unknown) => error)).toMatchObject(is);
    expect(entries('initialize')).toHaveLength(2);
  });

  it('without the id of the request means that the session is lost, so the call is sent again', async () => {
    const { server, entries } = await sloppy(mode);
    const tools = await openServers().servers.tools(contextOf([server]));
    expect(await callTool(tools, 'odd__lost_once')).toEqual({ text: 'found', isError: false });
    expect(entries('call')).toHaveLength(2);
  });
});

it('waits as long as startMs for a server to start', async () => {
  const slow = { DELAY: '1000' };
  const late = await sloppy('stdio', { startMs: 300 }, slow);
  await expect(openServers({ endMs: 100 }).servers.tools(contextOf([late.server]))).rejects.toMatchObject({
    code: 'tool_server_unavailable',
  });
  const inTime = await sloppy('stdio', { startMs: 60_000 }, slow);
  expect(await openServers().servers.tools(contextOf([inTime.server]))).not.toEqual([]);
});
