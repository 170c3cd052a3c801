import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { AddressRefused, openOutbound, type Outbound, type OutboundOptions } from './outbound-fetch.ts';

let server: Server;
let port: number;
let seen: IncomingMessage[] = [];
let answer: (request: IncomingMessage, response: ServerResponse) => void;
const opened: Outbound[] = [];

beforeAll(async () => {
  server = createServer((request, response) => {
    seen.push(request);
    answer(request, response);
  });
  // IPv6 and, where the machine maps it, IPv4.
  server.listen(0, '::');
  await once(server, 'listening');
  ({ port } = server.address() as AddressInfo);
});

beforeEach(() => {
  seen = [];
  answer = (_request, response) => response.end('hello');
});

afterAll(async () => {
  await Promise.all(opened.map((outbound) => outbound.close()));
  server.closeAllConnections();
  server.close();
});

const open = (options: OutboundOptions) => {
  const outbound = openOutbound(options);
  opened.push(outbound);
  return outbound.fetch;
};

/** Resolves any name to the next of the answers. */
const answering = (...answers: string[]): NonNullable<OutboundOptions['lookup']> =>
  ((_name: string, _how: object, done: (error: null, found: object[]) => void) => {
    const address = answers.shift() ?? 'no more';
    done(null, [{ address, family: address.includes(':') ? 6 : 4 }]);
  }) as unknown as NonNullable<OutboundOptions['lookup']>;

const causeOf = (call: Promise<Response>) =>
  call.then(
    () => 'no error',
    (error: Error) => error.cause,
  );

describe('a fetch for URLs from manifests', () => {
  test.each([
    ...['127.0.0.1', 'localhost', '[::1]', '2130706433', '0x7f.1', '0177.0.0.1', '127.1', '0', '[::ffff:127.0.0.1]'],
  ])('refuses %s', async (host) => {
    const cause = await causeOf(open({})(`http://${host}:${port}/`));
    expect(cause).toBeInstanceOf(AddressRefused);
    expect((cause as Error).message).toContain('ALLOWED_PRIVATE_ADDRESSES');
    expect(seen).toHaveLength(0);
  });

  test('refuses a name that resolves to a private address, on https too', async () => {
    const fetch = open({ lookup: answering('10.0.0.1', '169.254.169.254') });
    for (const url of ['http://metadata.example/', 'https://metadata.example/']) {
      expect(await causeOf(fetch(url))).toMatchObject({ name: 'AddressRefused', message: /metadata\.example/ });
    }
  });

  test('checks the address of a name at each connection', async () => {
    answer = (_request, response) => response.setHeader('connection', 'close').end();
    const fetch = open({ lookup: answering('127.0.0.1', '::1', '127.0.0.1'), allowed: `127.0.0.1:${port}` });
    const url = `http://rebinding.example:${port}/`;
    expect((await fetch(url)).status).toBe(200);
    expect(await causeOf(fetch(url))).toBeInstanceOf(AddressRefused);
    expect((await fetch(url)).status).toBe(200);
    expect(seen).toHaveLength(2);
  });

  test.each([
    ['localhost', 'localhost'],
    ['127.0.0.0/8', '127.0.0.1'],
    ['::1', '[::1]'],
    ['*', '127.0.0.1'],
  ])('%s allows a connection to %s', async (allowed, host) => {
    const response = await open({ allowed })(`http://${host}:${port}/`);
    expect(await response.text()).toBe('hello');
  });

  test('does not connect to a port that is not allowed', async () => {
    expect(await causeOf(open({ allowed: 'localhost:1' })(`http://localhost:${port}/`))).toBeInstanceOf(AddressRefused);
  });

  test('does not follow a redirect, so that no credentials go elsewhere', async () => {
    answer = (_request, response) => response.writeHead(307, { location: '/elsewhere' }).end();
    const fetch = open({ allowed: '*' });
    const headers = { authorization: 'Bearer x' };
    await expect(fetch(`http://localhost:${port}/`, { headers })).rejects.toThrow(TypeError);
    expect((await fetch(`http://localhost:${port}/`, { headers, redirect: 'manual' })).status).toBe(307);
    expect(seen.map(({ url }) => url)).toEqual(['/', '/']);
  });

  test('ignores proxies of the environment', async () => {
    process.env['HTTP_PROXY'] = 'http://127.0.0.1:1/';
    try {
      expect(await (await open({ allowed: '*' })(`http://localhost:${port}/`)).text()).toBe('hello');
    } finally {
      delete process.env['HTTP_PROXY'];
    }
  });

  test('stops when the signal aborts, also in the middle of a response', async () => {
    answer = (_request, response) => void response.write('begun');
    const abort = new AbortController();
    const response = await open({ allowed: '*' })(`http://localhost:${port}/`, { signal: abort.signal });
    const reading = response.text();
    abort.abort(new Error('enough'));
    await expect(reading).rejects.toThrow('enough');
  });
});
