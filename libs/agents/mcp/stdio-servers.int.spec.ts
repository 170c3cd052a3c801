import { readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { ByteBudget } from '#platform';
import { eventually } from '#testing';
import { allowing } from '../allowances.testing.ts';
import { NoRoom } from '../harness.ts';
import {
  callTool,
  closeAll,
  contextOf,
  EVERYTHING,
  isRunning,
  MODULES,
  oddServer,
  openServers,
  sharedFolder,
  startServers,
  type Saved,
  failedCall,
} from './mcp-servers.testing.ts';

const everything = { name: 'everything', command: process.execPath, args: [EVERYTHING, 'stdio'] };
const LOST = /^The outcome is unknown/;

afterEach(closeAll);

it('runs the program of docs/tools.md', async () => {
  const page = readFileSync(resolve(import.meta.dirname, '../../../docs/tools.md'), 'utf8');
  const [, program] = /^```js\n([^]*?)^```$/m.exec(page)!;
  const file = join(sharedFolder(), 'weather.mjs');
  writeFileSync(file, program!);
  const { servers } = openServers();
  const tools = await servers.tools(contextOf([{ name: 'weather', command: process.execPath, args: [file] }]));
  expect(tools).toMatchObject([{ name: 'weather__forecast', policy: 'allow' }]);
  const answer = await callTool(tools, 'weather__forecast', { city: 'Oslo' });
  expect(answer).toEqual({ text: 'It will be sunny in Oslo.', isError: false });
});

describe('the tools of a public server', () => {
  const { servers, close } = startServers({ endMs: 100 });
  afterAll(close);

  it('are listed with names, titles, schemas and policies', async () => {
    const tools = await servers.tools(contextOf([everything]));
    const byName = new Map(tools.map((tool) => [tool.name, tool]));
    expect(byName.get('everything__echo')).toMatchObject({
      title: 'Echo Tool',
      description: 'Echoes back the input string',
      inputSchema: { type: 'object', required: ['message'] },
      policy: 'allow',
      idempotent: true,
    });
    expect(byName.get('everything__gzip-file-as-resource')).toMatchObject({ policy: 'ask', idempotent: true });
    expect(byName.get('everything__toggle-simulated-logging')).toMatchObject({ policy: 'ask', idempotent: false });
  });

  it('answer with text, with errors in the input too', async () => {
    const tools = await servers.tools(contextOf([everything]));
    expect(await callTool(tools, 'everything__echo', { message: 'hi' })).toEqual({ text: 'Echo: hi', isError: false });
    const wrong = await callTool(tools, 'everything__echo', { message: 1 });
    expect(wrong).toEqual({ text: expect.stringMatching(/message/) as string, isError: true });
  });

  it('leave images as files, which the model is shown', async () => {
    const tools = await servers.tools(contextOf([everything]));
    const saved: Saved[] = [];
    const result = await callTool(tools, 'everything__get-tiny-image', {}, { saved });
    expect(result.fileIds).toEqual(['file-1']);
    expect(result.text).toMatch(/^.*\n\[image: image\.png, image\/png, file file-1\]\n/);
    expect(saved).toMatchObject([{ name: 'image.png', mimeType: 'image/png' }]);
    expect(
      Buffer.from(saved[0]?.bytes ?? [])
        .subarray(1, 4)
        .toString(),
    ).toBe('PNG');
  });

  it('answer with text and structure, links and resources', async () => {
    const tools = await servers.tools(contextOf([everything]));
    const structured = await callTool(tools, 'everything__get-structured-content', { location: 'New York' });
    expect(JSON.parse(structured.text)).toMatchObject({ conditions: expect.any(String) as string });
    const links = await callTool(tools, 'everything__get-resource-links', { count: 2 });
    expect(links.text.match(/^\[link: .*, demo:.*\]$/gm)).toHaveLength(2);
    const input = { resourceType: 'Text', resourceId: 1 };
    expect((await callTool(tools, 'everything__get-resource-reference', input)).text).toMatch(
      /^\[resource: demo:.*\]\n/m,
    );
  });

  it('read files, where the server is one for files', async () => {
    const folder = sharedFolder();
    writeFileSync(join(folder, 'a.txt'), 'what is in it');
    const script = join(MODULES, '@modelcontextprotocol/server-filesystem/dist/index.js');
    const server = { name: 'files', command: process.execPath, args: [script, folder], idempotent: ['write_*'] };
    const tools = await openServers().servers.tools(contextOf([server]));
    const policies = new Map(tools.map(({ name, policy, idempotent }) => [name, [policy, idempotent]]));
    expect(policies.get('files__read_text_file')).toEqual(['allow', true]);
    expect(policies.get('files__write_file')).toEqual(['ask', true]);
    expect(policies.get('files__move_file')).toEqual(['ask', false]);
    const read = await callTool(tools, 'files__read_text_file', { path: join(folder, 'a.txt') });
    expect(read).toEqual({ text: 'what is in it', isError: false });
    const outside = await callTool(tools, 'files__read_text_file', { path: '/etc/hostname' });
    expect(outside).toEqual({ text: expect.stringMatching(/denied/) as string, isError: true });
  });

  test('stop before they end, and the server goes on serving others', async () => {
    const tools = await servers.tools(contextOf([everything]));
    const abort = new AbortController();
    // Longer than the test may take.
    const input = { duration: 60, steps: 60 };
    const long = callTool(tools, 'everything__trigger-long-running-operation', input, { signal: abort.signal });
    const ended = long.catch((error: unknown) => error);
    await callTool(tools, 'everything__echo', { message: 'hi' });
    abort.abort(new Error('enough'));
    expect(await ended).toMatchObject({ message: 'enough' });
    expect((await callTool(tools, 'everything__echo', { message: 'ho' })).text).toBe('Echo: ho');
  }, 30_000);
});

describe('the list of tools', () => {
  it('has fitting names, short descriptions, and none with a huge schema', async () => {
    const { input } = oddServer({ idempotent: ['crash?once', 'crash/*'] });
    const { servers, log } = openServers();
    const tools = await servers.tools(contextOf([input]));
    const names = tools.map(({ name }) => name);
    for (const name of names) expect(name).toMatch(/^odd__[a-zA-Z0-9_-]{1,59}$/);
    expect(new Set(names).size).toBe(names.length);
    expect(names).toContain('odd__crash_once');
    expect(names.filter((name) => /^odd__crash_once_[0-9a-f]{8}$/.test(name))).toHaveLength(2);
    expect(names).not.toContain('odd__big_schema');
    expect(log()).toContain('odd__big_schema');
    const [long = ''] = names.filter((name) => name.startsWith('odd__long_'));
    expect((await callTool(tools, long)).text).toBe('long');
    expect(tools.find(({ name }) => name === 'odd__crash')?.description).toHaveLength(8 * 1024);
    expect(tools.filter(({ idempotent }) => idempotent)).toHaveLength(4);
  });

  it('has no more than 1,000', async () => {
    const { input } = oddServer({ env: { MANY: '1500' } });
    const { servers, log } = openServers();
    const listed = await servers.tools(contextOf([input]));
    // One of them has a huge schema.
    expect(listed).toHaveLength(999);
    expect(log()).toContain('tool list truncated');
  });

  it('is read no further than 2 MiB, however many pages there are', async () => {
    const { input, entries } = oddServer({ env: { ENDLESS: '500000' } });
    const { servers, log } = openServers();
    expect(await servers.tools(contextOf([input]))).toHaveLength(4);
    expect(entries('list')).toHaveLength(5);
    expect(log()).toContain('tool list truncated');
  });

  it.each([
    ['a page of more than 2 MiB', { ENDLESS: '3000000' }],
    ['a schema of 200 levels', { DEEP: '1' }],
  ])('is refused with %s', async (_what, env) => {
    const { input, entries } = oddServer({ env });
    const tools = openServers().servers.tools(contextOf([input]));
    await expect(tools).rejects.toMatchObject({ code: 'tool_server_misconfigured' });
    expect(entries('list')).toHaveLength(1);
  });

  it('is asked for again when the server says that it has changed', async () => {
    const { input, entries } = oddServer();
    const { servers } = openServers();
    const context = contextOf([input]);
    const tools = await servers.tools(context);
    await servers.tools(context);
    expect(entries('list')).toHaveLength(2);
    await callTool(tools, 'odd__add_tool');
    const more = await eventually(
      async () => (await servers.tools(context)).filter(({ name }) => name === 'odd__added')[0],
      { what: 'the new tool is there' },
    );
    expect((await callTool([more], 'odd__added')).text).toBe('added');
  });

  it('is whole though a large result arrives between two of its pages', async () => {
    const { input, entries } = oddServer();
    const { servers, log } = openServers();
    const context = contextOf([input]);
    const tools = await servers.tools(context);
    const large = callTool(tools, 'odd__large_amid_list');
    await eventually(() => entries('call')[0], { what: 'the call has begun' });
    const again = await eventually(
      async () => {
        const found = await servers.tools(context);
        return entries('list').length > 2 ? found : undefined;
      },
      { what: 'the list is asked for again' },
    );
    expect((await large).text.length).toBeGreaterThanOrEqual(1024 * 1024);
    expect(again.map(({ name }) => name)).toEqual(tools.map(({ name }) => name));
    expect(log()).not.toContain('tool list truncated');
    expect(entries('start')).toHaveLength(1);
  });
});

describe('a server process', () => {
  it('is one for all Runs of an agent, and another for another agent', async () => {
    const { input, entries } = oddServer();
    const { servers } = openServers();
    await Promise.all([servers.tools(contextOf([input])), servers.tools(contextOf([input]))]);
    expect(entries('start')).toHaveLength(1);
    await servers.tools(contextOf([input], { agentId: 'agent-2' }));
    expect(entries('start')).toHaveLength(2);
  });

  it('ends when nobody has used it for a while, and is started again when it is needed', async () => {
    const { input, entries, processes } = oddServer();
    const { servers } = openServers({ idleMs: 50 });
    const tools = await servers.tools(contextOf([input]));
    await eventually(() => processes().length === 0, { what: 'the process has ended' });
    expect((await callTool(tools, 'odd__meta')).isError).toBe(false);
    expect(entries('start')).toHaveLength(2);
  });

  it('takes no new call beyond its age, and ends the call that it has', async () => {
    const { input, entries, processes } = oddServer();
    const { servers } = openServers({ maxAgeMs: 1_500, endMs: 100 });
    const context = contextOf([input]);
    const abort = new AbortController();
    const call = callTool(await servers.tools(context), 'odd__hang', {}, { signal: abort.signal });
    const ended = expect(call).rejects.toThrow('enough');
    await eventually(() => entries('call')[0], { what: 'the call has begun' });
    const begun = entries('start').length;
    const isAnother = async () => (await servers.tools(context)).length > 0 && entries('start').length > begun;
    await eventually(isAnother, { what: 'another process is asked' });
    expect(entries('cancelled')).toEqual([]);
    abort.abort(new Error('enough'));
    await ended;
    await eventually(() => entries('cancelled')[0], { what: 'the process still had the call' });
    await servers.close();
    expect(processes()).toEqual([]);
  });

  it('ends when there are too many, the one first that was not used for longest', async () => {
    const { servers } = openServers({ maxOpen: 2 });
    const three = [oddServer(), oddServer(), oddServer()];
    for (const { input } of three) await servers.tools(contextOf([input]));
    const running = () => three.map(({ processes }) => processes().length > 0);
    await eventually(() => running().join() === 'false,true,true', { what: 'the first has ended' });
  });

  it.each([
    ['leaving', 0],
    ['clinging', 1],
  ])('leaves nothing of what it has started when all are closed, %s itself', async (mode, sigterms) => {
    const { input, entries, processes } = oddServer({ mode });
    const { servers } = openServers({ endMs: mode === 'leaving' ? 10_000 : 800 });
    await servers.tools(contextOf([input]));
    await eventually(() => entries('spawn')[0], { what: 'it has started another' });
    const pids = await eventually(() => (processes().length === 2 ? processes() : undefined), { what: 'both run' });
    await servers.close();
    expect(entries('sigterm')).toHaveLength(sigterms);
    await eventually(() => pids.every((pid) => !isRunning(pid)), { what: 'both have ended' });
  });

  it('gets a few variables and those of the manifest, and runs where the service runs', async () => {
    process.env['SPOOL_TEST_SECRET'] = 'not for servers';
    const { input } = oddServer({ env: { LEVEL: 'high', SECRET: { env: 'ODD_SECRET' } } });
    const { servers, log } = openServers({ allowances: allowing({ ODD_SECRET: 'a-long-secret' }) });
    const tools = await servers.tools(contextOf([input]));
    const { text } = await callTool(tools, 'odd__env');
    delete process.env['SPOOL_TEST_SECRET'];
    const { env, cwd } = JSON.parse(text) as { env: Record<string, string>; cwd: string };
    expect(cwd).toBe(process.cwd());
    expect(env).toMatchObject({ LEVEL: 'high', SECRET: '***', HOME: '/tmp' });
    expect(Object.keys(env)).not.toContain('SPOOL_TEST_SECRET');
    expect(tools.find(({ name }) => name === 'odd__env')?.title).toBe('Tells ***');
    await eventually(() => log().includes('A secret on standard error: ***'), { what: 'its standard error is logged' });
    expect(await callTool(tools, 'odd__fail')).toEqual({ text: 'It failed with ***.', isError: true });
    const refused = await callTool(tools, 'odd__refuse');
    expect(refused).toEqual(failedCall('refused', /\*\*\* is no y{100}/));
    expect(refused.text.length).toBeLessThanOrEqual(2_048);
    expect(log()).not.toContain('a-long-secret');
  });
});

describe('a call', () => {
  // For those that leave their server as it was.
  const { servers, close } = startServers();
  const shared = oddServer();
  afterAll(close);

  it('tells the server who it is for', async () => {
    const tools = await servers.tools(contextOf([shared.input]));
    expect(JSON.parse((await callTool(tools, 'odd__meta')).text)).toMatchObject({
      'spool/userId': 'user-1',
      'spool/toolCallId': 'call-odd__meta',
      'spool/threadId': 'thread-1',
      'spool/runId': 'run-1',
    });
  });

  it('has an unknown outcome when the server dies, and is not repeated; the next one finds a new server', async () => {
    const { input, entries } = oddServer();
    const tools = await openServers().servers.tools(contextOf([input]));
    expect(await callTool(tools, 'odd__crash')).toEqual(failedCall('lost', LOST, { exitCode: 1 }));
    expect((await callTool(tools, 'odd__meta')).isError).toBe(false);
    expect(entries('call').map(({ name }) => name)).toEqual(['crash', 'meta']);
    expect(entries('start')).toHaveLength(2);
  });

  it('is repeated once when the server dies, where the tool is idempotent', async () => {
    const { input, entries } = oddServer();
    const tools = await openServers().servers.tools(contextOf([input]));
    expect(await callTool(tools, 'odd__crash_once')).toEqual({ text: 'done after all', isError: false });
    expect(new Set(entries('call').map(({ meta }) => meta?.['spool/toolCallId'])).size).toBe(1);
    expect(entries('call')).toHaveLength(2);
  });

  it('is given up by the server too, at the abort of its signal', async () => {
    const tools = await servers.tools(contextOf([shared.input]));
    const abort = new AbortController();
    const call = callTool(tools, 'odd__hang', {}, { signal: abort.signal });
    await eventually(() => shared.entries('call').find(({ name }) => name === 'hang'), { what: 'it has begun' });
    abort.abort(new Error('enough'));
    await expect(call).rejects.toThrow('enough');
    await eventually(() => shared.entries('cancelled')[0], { what: 'the server knows' });
    expect((await callTool(tools, 'odd__meta')).isError).toBe(false);
    expect(shared.entries('start')).toHaveLength(1);
  });

  it('is given up when it takes too long', async () => {
    const { input, entries } = oddServer({ timeoutMs: 100 });
    const tools = await openServers().servers.tools(contextOf([input]));
    const result = await callTool(tools, 'odd__hang');
    expect(result).toEqual(failedCall('timeout', /^The tool did not answer within 0\.1 s/));
    await eventually(() => entries('cancelled')[0], { what: 'the server knows' });
  });

  it('leaves a server that does not answer any more, and the next one finds a new server', async () => {
    const { input, entries, processes } = oddServer();
    const tools = await openServers({ pingMs: 100, endMs: 100 }).servers.tools(contextOf([input]));
    const abort = new AbortController();
    const call = callTool(tools, 'odd__freeze', {}, { signal: abort.signal });
    await eventually(() => entries('call')[0], { what: 'it has begun' });
    abort.abort(new Error('enough'));
    await expect(call).rejects.toThrow('enough');
    await eventually(() => processes().length === 0, { what: 'it was ended', timeoutMs: 30_000 });
    expect((await callTool(tools, 'odd__meta')).isError).toBe(false);
  });

  it('answers what is no result with an error', async () => {
    const tools = await servers.tools(contextOf([shared.input]));
    const result = await callTool(tools, 'odd__nonsense');
    expect(result).toEqual(failedCall('invalid', /response is invalid/));
  });

  it('leaves sounds and binary resources as files, and quotes the others', async () => {
    const tools = await servers.tools(contextOf([shared.input]));
    const saved: Saved[] = [];
    const { text, fileIds } = await callTool(tools, 'odd__mixed', {}, { saved });
    expect(text.split('\n')).toEqual([
      '{"a":1}',
      '[audio: audio.wav, audio/wav, file file-1]',
      '[file: b_c.bin, application/zip, file file-2]',
      '[resource: note://1]',
      'the note',
      '[link: second, note://2]',
    ]);
    expect(fileIds).toBeUndefined();
    expect(saved.map(({ bytes }) => bytes.length)).toEqual([3, 3]);
  });

  it('fails alone a call whose result finds no room in memory, and gives all back', async () => {
    const { input } = oddServer();
    let held = 0;
    let most = 0;
    const limits = { process: 24 * 1024 ** 2, share: 24 * 1024 ** 2 };
    const budget = new ByteBudget(limits, (bytes) => (most = Math.max(most, (held = bytes))));
    const openHold = () => budget.hold('a');
    const { servers } = openServers();
    const tools = await servers.tools(contextOf([input], { openHold }));
    const kept = held;
    expect(kept).toBeGreaterThan(0);
    const text = 'The tool’s result could not be read: too much is being read at once. The call may have taken effect.';
    expect(await callTool(tools, 'odd__large', {}, { openHold })).toEqual(failedCall('no_room', text));
    expect(most).toBeGreaterThan(20 * 1024 ** 2);
    await eventually(() => held <= kept, { what: 'the room of the message is given back' });
    expect((await callTool(tools, 'odd__meta', {}, { openHold })).isError).toBe(false);
    const makeRoom = (bytes: number): never => {
      throw new NoRoom(bytes);
    };
    expect(await callTool(tools, 'odd__meta', {}, { openHold, makeRoom })).toEqual(failedCall('no_room', text));
    await servers.close();
    expect(held).toBe(0);
  });

  it('takes a large result, and refuses a huge one with little memory', async () => {
    const { input, entries } = oddServer();
    const tools = await openServers().servers.tools(contextOf([input]));
    expect((await callTool(tools, 'odd__large')).text).toHaveLength(8 * 1024 * 1024);
    const before = process.memoryUsage();
    let most = 0;
    const watch = setInterval(() => (most = Math.max(most, process.memoryUsage().rss)), 5);
    const result = await callTool(tools, 'odd__huge');
    clearInterval(watch);
    expect(result).toEqual(
      failedCall(
        'too_large',
        /^The tool server sent too much: a result of more than 16 MiB, or too many parts or messages\.$/,
      ),
    );
    expect(most - before.rss).toBeLessThan(128 * 1024 * 1024);
    expect((await callTool(tools, 'odd__meta')).isError).toBe(false);
    expect(entries('start')).toHaveLength(2);
  });
});
