import { tmpdir } from 'node:os';
import { inspect } from 'node:util';
import { allowing } from '../allowances.testing.ts';
import { childrenOf, closeAll, contextOf, oddServer, openServers, testSandbox } from './mcp-servers.testing.ts';

afterEach(closeAll);

describe('a server that is not allowed', () => {
  it.each([
    ['a program that is not listed', { name: 'a', command: '/bin/sh' }],
    ['the network', { name: 'a', command: process.execPath, network: true }],
  ])('fails the Run: %s', async (_what, server) => {
    const tools = openServers().servers.tools(contextOf([server]));
    await expect(tools).rejects.toMatchObject({ code: 'tool_server_misconfigured', cause: { name: 'NotAllowed' } });
  });

  it('is refused where its sandbox would show data of the service', async () => {
    const hidden = [tmpdir()];
    const { servers } = openServers({ sandbox: testSandbox({ hidden }) });
    const tools = servers.tools(contextOf([oddServer().input]));
    await expect(tools).rejects.toMatchObject({ code: 'tool_server_misconfigured' });
  });
});

describe('a server that cannot be reached', () => {
  const missing = { name: 'missing', command: '/no/such/program' };

  it('fails the Run where it is required', async () => {
    const tools = openServers().servers.tools(contextOf([missing]));
    await expect(tools).rejects.toMatchObject({ name: 'HarnessError', code: 'tool_server_misconfigured' });
    const { input } = oddServer({ env: { SECRET: { env: 'NOT_SET' } } });
    const allowances = allowing({ NOT_SET: undefined });
    await expect(openServers({ allowances }).servers.tools(contextOf([input]))).rejects.toMatchObject({
      code: 'tool_server_unavailable',
    });
  });

  it('is left out where it is optional, with a warning, and tried again later', async () => {
    const { servers, log } = openServers({ avoidMs: 0 });
    const { input } = oddServer();
    const context = contextOf([{ ...missing, required: false }, input]);
    const tools = await servers.tools(context);
    expect(new Set(tools.map(({ name }) => name.split('__')[0]))).toEqual(new Set(['odd']));
    await servers.tools(context);
    expect(log().match(/optional tool server left out/g)).toHaveLength(2);
  });

  it('is waited for only so long, and not by each Run that can do without it', async () => {
    const args = ['-e', 'setInterval(() => {}, 1e6)'];
    const silent = { name: 'silent', command: process.execPath, args, startMs: 200 };
    const { servers, log } = openServers({ endMs: 100 });
    await expect(servers.tools(contextOf([silent]))).rejects.toMatchObject({ code: 'tool_server_unavailable' });
    const context = contextOf([{ ...silent, required: false }]);
    expect(await servers.tools(context)).toEqual([]);
    expect(await servers.tools(context)).toEqual([]);
    expect(log().match(/optional tool server left out/g)).toHaveLength(1);
  });

  const FATAL = 'console.error(`FATAL: ${process.env.KEY} is no key${" x".repeat(500)}`); process.exit(1)';
  const FLOOD = `console.log('x\\n'.repeat(200)); setInterval(() => {}, 1e6)`;
  const LAST = 'Its last lines on standard error:';
  it.each([
    [
      'ended',
      ['-e', FATAL],
      `The program ended with exit status 1 before it answered. ${LAST} FATAL: *** is no key x x`,
    ],
    [
      'ended within a line',
      ['-e', 'process.stderr.write("no"); process.exitCode = 3'],
      `exit status 3 before it answered. ${LAST} no`,
    ],
    ['is missing', ['/no/such/script.mjs'], `Error: Cannot find module '/no/such/script.mjs' | `],
    ['says nothing', ['-e', 'process.exit(0)'], 'The program ended with exit status 0 before it answered.'],
    [
      'is silent',
      ['-e', 'console.error("wait"); setInterval(() => {}, 1e6)'],
      `The program did not answer in time. ${LAST} wait`,
    ],
    ['was ended', ['-e', FLOOD], 'The program was ended before it answered. Standard output has too many lines'],
  ])('says what its program left when it %s', async (_what, args, why) => {
    const key = 'a-long-secret';
    const { servers, log } = openServers({ endMs: 100, allowances: allowing({ KEY: key }) });
    const server = { name: 'dying', command: process.execPath, args, env: { KEY: { env: 'KEY' } }, startMs: 1_500 };
    const error = await servers.tools(contextOf([server])).catch((thrown: unknown) => thrown);
    const cause = { name: 'ServerEnded', message: expect.stringContaining(why) as string };
    expect(error).toMatchObject({ code: 'tool_server_unavailable', cause: { name: 'ServerUnavailable', cause } });
    expect(error).toMatchObject({ cause: { cause: { cause: { name: 'McpError' } } } });
    expect(await servers.tools(contextOf([{ ...server, required: false }]))).toEqual([]);
    expect(log()).toContain(JSON.stringify(why).slice(1, -1));
    expect(log()).not.toContain(key);
    expect(inspect(error, { depth: 10 })).not.toContain(key);
    expect(inspect(error, { depth: 10 })).not.toContain(' x'.repeat(200));
  });

  it('does not hold up a Run that has to stop', async () => {
    const silent = { name: 'silent', command: process.execPath, args: ['-e', 'setInterval(() => {}, 1e6)'] };
    const abort = new AbortController();
    const before = childrenOf(process.pid);
    const { servers } = openServers({ endMs: 100 });
    const tools = servers.tools(contextOf([silent], { signal: abort.signal }));
    abort.abort(new Error('enough'));
    await expect(tools).rejects.toThrow('enough');
    await servers.close();
    // Though it had hardly been started.
    expect(childrenOf(process.pid)).toEqual(before);
  });
});
