import { McpError } from '@modelcontextprotocol/sdk/types.js';
import { StreamableHTTPError } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { hideInError } from './hide-secrets.ts';
import { explainEnd } from './server-ending.ts';
import { serverReport } from './server-report.ts';

const SECRET = 'the secret';
const closed = new McpError(-32_000, 'Connection closed');
const ended = (exit: { status: number | null; signal: string | null }) =>
  explainEnd(closed, { exit, broken: null, lastLines: [`no ${SECRET}`] }, [SECRET]);

test.each<[string, unknown, object]>([
  ['an exit status', ended({ status: 3, signal: null }), { exitCode: 3 }],
  ['a signal', ended({ status: null, signal: 'SIGKILL' }), { signal: 'SIGKILL' }],
  ['an error of JSON-RPC', new McpError(-32_603, `Internal ${SECRET}`), { code: '-32603' }],
  [
    'an HTTP status',
    Object.assign(new McpError(-32_000, SECRET), { cause: new StreamableHTTPError(503, 'Busy') }),
    { status: 503 },
  ],
  ['an HTTP status of a connection', new StreamableHTTPError(503, SECRET), { status: 503 }],
  [
    'a code of the network',
    new TypeError('fetch failed', { cause: Object.assign(new Error('refused'), { code: 'ECONNREFUSED' }) }),
    { code: 'ECONNREFUSED' },
  ],
])('reports %s without secrets', (_, error, expected) => {
  const wrapped = new Error('Cannot connect to the tool server files.', { cause: hideInError(error, [SECRET]) });
  const report = serverReport('files', wrapped);
  expect(report).toMatchObject({
    ...{ source: 'tool_server', name: 'files', ...expected },
    message: expect.stringMatching(/^Cannot connect to the tool server files\. ./) as string,
  });
  expect(JSON.stringify(report)).not.toContain(SECRET);
});
