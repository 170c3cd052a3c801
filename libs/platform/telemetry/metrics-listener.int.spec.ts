import { createServer, type Server } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { pino } from 'pino';
import { loadConfig } from '../process/load-config.ts';
import { StartError } from '../process/main-process.ts';
import { MetricsListener } from './metrics-listener.ts';

// Real: sockets.

let listener: MetricsListener | undefined;
afterEach(() => listener?.close());

const settings = (port: string) => loadConfig({ METRICS_PORT: port });

/** Opens a listener on a free port. Returns its URL. */
async function open(): Promise<string> {
  const lines: string[] = [];
  listener = await MetricsListener.open(settings('0'), pino({}, { write: (line) => void lines.push(line) }));
  return (JSON.parse(lines[0]!) as { url: string }).url;
}

const get = async (url: string): Promise<[number, unknown]> => {
  const response = await fetch(url);
  return [response.status, await response.json()];
};

test('the error for a port in use names the setting', async () => {
  const other: Server = createServer().listen(0, '127.0.0.1');
  await once(other, 'listening');
  const { port } = other.address() as AddressInfo;
  const opened = MetricsListener.open(settings(String(port)), pino({ level: 'silent' }));
  const words = `Cannot listen on METRICS_PORT ${port} of 127.0.0.1 (EADDRINUSE).`;
  await expect(opened).rejects.toThrow(new StartError(words));
  other.close();
});

test('a process that has not started is live, but not ready', async () => {
  const url = await open();
  expect(await get(`${url}/health/live`)).toEqual([200, { status: 'ok' }]);
  expect(await get(`${url}/health/ready`)).toEqual([
    503,
    { status: 'starting', reasons: ['The process is starting.'] },
  ]);
});

test.each([
  ['ready', 200],
  ['degraded', 200],
  ['away', 503],
  ['stopping', 503],
] as const)('reports the status of the process: %s is %i', async (status, code) => {
  const url = await open();
  listener!.reportReadiness(() => Promise.resolve({ status, reasons: [`It is ${status}.`] }));
  expect(await get(`${url}/health/ready`)).toEqual([code, { status, reasons: [`It is ${status}.`] }]);
});

test('returns 404 for other paths and 405 for other methods', async () => {
  const url = await open();
  expect((await get(`${url}/`))[0]).toBe(404);
  expect((await fetch(`${url}/metrics`, { method: 'POST' })).status).toBe(405);
});
