import { tmpdir } from 'node:os';
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
    expect(log().match(/an optional tool server was left out/g)).toHaveLength(2);
  });

  it('is waited for only so long, and not by each Run that can do without it', async () => {
    const args = ['-e', 'setInterval(() => {}, 1e6)'];
    const silent = { name: 'silent', command: process.execPath, args, startMs: 200 };
    const { servers, log } = openServers({ endMs: 100 });
    await expect(servers.tools(contextOf([silent]))).rejects.toMatchObject({ code: 'tool_server_unavailable' });
    const context = contextOf([{ ...silent, required: false }]);
    expect(await servers.tools(context)).toEqual([]);
    expect(await servers.tools(context)).toEqual([]);
    expect(log().match(/an optional tool server was left out/g)).toHaveLength(1);
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
