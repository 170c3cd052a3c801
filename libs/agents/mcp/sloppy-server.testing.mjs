// An MCP server without the SDK. Its messages have nulls, unknown parts and byte order marks, which the SDK would not send.
// `node sloppy-server.testing.mjs` speaks stdio; with `http` or `events` it listens on PORT and answers with JSON or with
// server-sent events. LIST replaces the tools of its list. It starts after DELAY milliseconds. It refuses the first LOST_LISTS
// requests for its list as those of a lost session. Calls and starts of sessions go to the file JOURNAL.
import { appendFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { json } from 'node:stream/consumers';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';

const { JOURNAL, LIST, DELAY = '0', LOST_LISTS = '0', PORT } = process.env;
const [, , mode = 'stdio'] = process.argv;
const BOM = '\uFEFF';
const object = { type: 'object', required: null, $schema: null };
const text = (value) => ({ type: 'text', text: value, annotations: null, _meta: null });
const error = (message, more) => ({ error: { message, ...more } });

/** The HTTP status and the message's fields, by tool name. */
const CALLS = {
  good: [
    200,
    { result: { content: [text('the useful part'), { type: 'video', data: 'AAAA' }], _meta: null }, error: null },
  ],
  none: [200, { result: null }],
  no_code: [200, error('it has no code')],
  refuse_400: [400, error('not with 400', { code: -32602 })],
  refuse_404: [404, error('not with 404', { code: -32001 })],
  refuse_500: [500, error('not with 500')],
  lost_once: [404, error('Session not found', { code: -32001 })],
};

const TOOLS = [
  { name: 'bad', inputSchema: { anyOf: [{ type: 'object', properties: {} }] } },
  { name: 'good', inputSchema: object, annotations: null, description: null, outputSchema: { anyOf: [] } },
  { name: 'good', inputSchema: object, description: 'The second of this name.' },
  ...Object.keys(CALLS).map((name) => ({ name, inputSchema: object })),
];

let isLost = true;
let lostLists = Number(LOST_LISTS);
const note = (entry) => appendFileSync(JOURNAL, `${JSON.stringify({ pid: process.pid, ...entry })}\n`);

function answerTo({ id, method, params }) {
  if (id === undefined) return null;
  if (method === 'initialize') {
    note({ did: method });
    const { protocolVersion } = params;
    const capabilities = { tools: { listChanged: null }, logging: null };
    return [200, { id, result: { protocolVersion, capabilities, serverInfo: { name: 'sloppy', version: null } } }];
  }
  if (method === 'tools/list' && lostLists-- > 0) return [404, { id, ...error('Session not found', { code: -32001 }) }];
  if (method === 'tools/list')
    return [200, { id, result: { tools: LIST ? JSON.parse(LIST) : TOOLS, nextCursor: null } }];
  if (method !== 'tools/call') return [200, { id, result: {} }];
  note({ did: 'call', name: params.name });
  const [status, message] = CALLS[params.name];
  if (params.name !== 'lost_once') return [status, { id, ...message }];
  // An error without the id of the request does not belong to the request.
  const answer = isLost ? [status, { id: null, ...message }] : [200, { id, result: { content: [text('found')] } }];
  isLost = false;
  return answer;
}

const line = (message) => JSON.stringify({ jsonrpc: '2.0', ...message, trace: null });

await sleep(Number(DELAY));
if (mode === 'stdio') {
  process.stdout.write(BOM);
  for await (const request of createInterface({ input: process.stdin })) {
    const answer = answerTo(JSON.parse(request));
    if (answer) process.stdout.write(`${line(answer[1])}\r\n\r\n`);
  }
} else {
  const http = createServer(async (request, response) => {
    if (request.method !== 'POST') return response.writeHead(405).end();
    const answer = answerTo(await json(request));
    if (answer === null) return response.writeHead(202).end();
    const [status, message] = answer;
    const isStream = mode === 'events' && status === 200;
    response.writeHead(status, { 'content-type': isStream ? 'text/event-stream' : 'application/json' });
    response.end(
      isStream ? `${BOM}: hi\r\n\r\ndata: null\r\n\r\ndata: ${line(message)}\r\n\r\n` : `${BOM}${line(message)}`,
    );
  });
  http.listen(Number(PORT), '127.0.0.1', () => console.log(`listening on port ${PORT}`));
}
