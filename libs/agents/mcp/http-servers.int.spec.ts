import { createServer } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { ByteBudget, findFreePort, openOutbound } from '#platform';
import { eventually } from '#testing';
import { allowing } from '../allowances.testing.ts';
import { NoRoom } from '../harness.ts';
import {
  callTool,
  closeAll,
  contextOf,
  EVERYTHING,
  listening,
  listeningOdd,
  oddServer,
  openServers,
  type Saved,
  failedCall,
} from './mcp-servers.testing.ts';

const LOST = /^The outcome is unknown/;

const at = (port: number, path = '/mcp', more = {}) => ({
  name: 'web',
  url: `http://127.0.0.1:${port}${path}`,
  ...more,
});

const listeningEverything = (port: number) => listening(EVERYTHING, ['streamableHttp'], {}, port);

/** The odd server over HTTP, and what it noted. */
async function odd(more = {}, variables: Record<string, string> = {}, ends?: (() => Promise<unknown>)[]) {
  const { journal, entries } = oddServer();
  const env = { JOURNAL: journal, SECRET: 'a-long-secret', ...variables };
  const { port, kill } = await listeningOdd(env, await findFreePort(), ends);
  return { server: at(port, '/', more), entries, kill, again: () => listeningOdd(env, port) };
}

/** For tests that leave their server as it was. */
let shared: Awaited<ReturnType<typeof odd>>;
const ends: (() => Promise<unknown>)[] = [];
beforeAll(async () => {
  shared = await odd({}, {}, ends);
});
afterEach(closeAll);
afterAll(() => Promise.all(ends.map((end) => end())));

describe('the tools of a public server over HTTP', () => {
  it('are listed and called, with text, errors and images', async () => {
    const { port } = await freePortEverything();
    const tools = await openServers().servers.tools(contextOf([at(port)]));
    expect(tools.find(({ name }) => name === 'web__echo')).toMatchObject({ policy: 'allow', idempotent: true });
    expect(await callTool(tools, 'web__echo', { message: 'hi' })).toEqual({ text: 'Echo: hi', isError: false });
    expect(await callTool(tools, 'web__echo', { message: 1 })).toMatchObject({ isError: true });
    const saved: Saved[] = [];
    const image = await callTool(tools, 'web__get-tiny-image', {}, { saved });
    expect(image.fileIds).toEqual(['file-1']);
    expect(saved).toHaveLength(1);
  });

  it.each([
    ['endless pages', '500000', 4, 5],
    ['endless pages, each too large', '3000000', 0, 1],
  ])('are read no further than 2 MiB: %s', async (_what, bytes, tools, lists) => {
    const { server, entries } = await odd({ required: false }, { ENDLESS: bytes });
    const before = process.memoryUsage.rss();
    expect(await openServers().servers.tools(contextOf([server]))).toHaveLength(tools);
    expect(entries('list')).toHaveLength(lists);
    expect(process.memoryUsage.rss() - before).toBeLessThan(64 * 1024 * 1024);
  });

  it('are there again after a restart, which loses all sessions', async () => {
    const { port, kill } = await freePortEverything();
    const { servers } = openServers();
    const tools = await servers.tools(contextOf([at(port)]));
    await kill();
    await listeningEverything(port);
    expect(await callTool(tools, 'web__echo', { message: 'hi' })).toEqual({ text: 'Echo: hi', isError: false });
  });

  it('that are idempotent are called again when the server dies, and fail when it stays away', async () => {
    const { port, kill, output } = await freePortEverything();
    const tools = await openServers().servers.tools(contextOf([at(port)]));
    const [slow] = tools.filter(({ name }) => name === 'web__trigger-long-running-operation');
    const call = callTool([{ ...slow! }], slow!.name, { duration: 60, steps: 60 });
    // POST: initialise, initialised, list, call.
    await eventually(() => output().match(/POST/g)?.length === 4, { what: 'the call has come' });
    const ended = expect(call).rejects.toMatchObject({ code: 'tool_server_unavailable' });
    await kill();
    await ended;
  });
});

describe('a call over HTTP', () => {
  it('carries the headers of the manifest, whose secrets are hidden, and who it is for', async () => {
    const server = { ...shared.server, headers: { Authorization: { env: 'WEB_AUTH' }, 'X-Plain': 'plain' } };
    const { servers, log } = openServers({ allowances: allowing({ WEB_AUTH: 'Bearer a-long-secret' }) });
    const tools = await servers.tools(contextOf([server]));
    const { headers } = JSON.parse((await callTool(tools, 'web__env')).text) as { headers: Record<string, string> };
    expect(headers).toMatchObject({ authorization: '***', 'x-plain': 'plain' });
    expect(JSON.parse((await callTool(tools, 'web__meta')).text)).toMatchObject({ 'spool/userId': 'user-1' });
    expect((await callTool(tools, 'web__fail')).text).toBe('It failed with ***.');
    expect(log()).not.toContain('a-long-secret');
  });

  it('follows a redirect within the origin, and to no other, so that no header goes elsewhere', async () => {
    const { server } = shared;
    const elsewhere = await odd();
    const headers = { 'X-Plain': 'plain' };
    const movedTo = (url: string) => ({ ...server, headers, url: `${server.url}moved?${encodeURIComponent(url)}` });
    const tools = await openServers().servers.tools(contextOf([movedTo('/')]));
    expect((await callTool(tools, 'web__meta')).isError).toBe(false);
    const away = openServers().servers.tools(contextOf([movedTo(elsewhere.server.url)]));
    await expect(away).rejects.toMatchObject({ code: 'tool_server_unavailable' });
    expect(elsewhere.entries('request')).toEqual([]);
  });

  it('has an unknown outcome when the server dies, and the next one finds the new server', async () => {
    const { server, entries, again } = await odd();
    const tools = await openServers().servers.tools(contextOf([server]));
    expect(await callTool(tools, 'web__crash')).toEqual(failedCall('lost', LOST));
    await again();
    expect((await callTool(tools, 'web__meta')).isError).toBe(false);
    expect(entries('call').map(({ name }) => name)).toEqual(['crash', 'meta']);
  });

  it('has an unknown outcome when its answer ends without a result', async () => {
    const { server } = shared;
    const tools = await openServers().servers.tools(contextOf([server]));
    expect(await callTool(tools, 'web__cut_off')).toEqual(failedCall('lost', LOST));
  });

  it('is sent again when the server has lost the session, for it has not begun it', async () => {
    const { server, kill, again, entries } = await odd();
    const { servers } = openServers();
    const tools = await servers.tools(contextOf([server]));
    await kill();
    await again();
    expect((await callTool(tools, 'web__add_tool')).isError).toBe(false);
    expect(entries('call')).toHaveLength(1);
  });

  it('is given up by the server too, at the abort of its signal; the session ends with it', async () => {
    const { server, entries } = await odd();
    const tools = await openServers().servers.tools(contextOf([server]));
    const abort = new AbortController();
    const call = callTool(tools, 'web__hang', {}, { signal: abort.signal });
    await eventually(() => entries('call')[0], { what: 'it has begun' });
    abort.abort(new Error('enough'));
    await expect(call).rejects.toThrow('enough');
    await eventually(() => entries('cancelled')[0], { what: 'the server knows' });
    const deleted = () => entries('request').some((entry) => 'method' in entry && entry.method === 'DELETE');
    await eventually(deleted, { what: 'the session is ended' });
  });

  it('fails alone a call whose result finds no room in memory, and gives all back', async () => {
    const { server } = shared;
    let held = 0;
    let most = 0;
    const limits = { process: 24 * 1024 ** 2, share: 24 * 1024 ** 2 };
    const budget = new ByteBudget(limits, (bytes) => (most = Math.max(most, (held = bytes))));
    const openHold = () => budget.hold('a');
    const { servers } = openServers();
    const tools = await servers.tools(contextOf([server], { openHold }));
    const kept = held;
    expect(kept).toBeGreaterThan(0);
    const text = 'The tool’s result could not be read: too much is being read at once. The call may have taken effect.';
    expect(await callTool(tools, 'web__large', {}, { openHold })).toEqual(failedCall('no_room', text));
    expect(most).toBeGreaterThan(20 * 1024 ** 2);
    await eventually(() => held <= kept, { what: 'the room of the message is given back' });
    expect((await callTool(tools, 'web__meta', {}, { openHold })).isError).toBe(false);
    const makeRoom = (bytes: number): never => {
      throw new NoRoom(bytes);
    };
    expect(await callTool(tools, 'web__meta', {}, { openHold, makeRoom })).toEqual(failedCall('no_room', text));
    await servers.close();
    expect(held).toBe(0);
  });

  it('takes a large result, and refuses a huge one with little memory', async () => {
    const { server } = shared;
    const tools = await openServers().servers.tools(contextOf([server]));
    expect((await callTool(tools, 'web__large')).text).toHaveLength(8 * 1024 * 1024);
    const before = process.memoryUsage();
    let most = 0;
    const watch = setInterval(() => (most = Math.max(most, process.memoryUsage().rss)), 5);
    const result = await callTool(tools, 'web__huge');
    clearInterval(watch);
    expect(result).toEqual(
      failedCall(
        'too_large',
        /^The tool server sent too much: a result of more than 16 MiB, or too many parts or messages\.$/,
      ),
    );
    expect(most - before.rss).toBeLessThan(128 * 1024 * 1024);
    expect((await callTool(tools, 'web__meta')).isError).toBe(false);
  });
});

describe('a server over HTTP that cannot be reached', () => {
  it('cannot be used at a private address, unless the operator allows it', async () => {
    const { server } = shared;
    const outbound = openOutbound({});
    const tools = openServers({ fetch: outbound.fetch }).servers.tools(contextOf([server]));
    await expect(tools).rejects.toMatchObject({
      code: 'tool_server_misconfigured',
      cause: { name: 'ServerUnavailable', cause: { cause: { name: 'AddressRefused' } } },
    });
    await outbound.close();
  });

  it('is unavailable when it answers otherwise, and the log has no secret that it repeats', async () => {
    const web = createServer((request, response) =>
      response.writeHead(403).end(`no: ${request.headers.authorization}`),
    );
    web.listen(0, '127.0.0.1');
    await once(web, 'listening');
    const { port } = web.address() as AddressInfo;
    const server = at(port, '/', { required: false, headers: { Authorization: { env: 'WEB_AUTH' } } });
    const { servers, log } = openServers({ allowances: allowing({ WEB_AUTH: 'Bearer a-long-secret' }) });
    expect(await servers.tools(contextOf([server]))).toEqual([]);
    expect(log()).toContain('no: ***');
    expect(log()).not.toContain('a-long-secret');
    web.close();
  });
});

/** Its own port is fixed unless it is given another. */
const freePortEverything = async () => listeningEverything(await findFreePort());
