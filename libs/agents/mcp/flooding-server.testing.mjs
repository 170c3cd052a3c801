// An MCP server without an SDK, which sends more than anyone asked for. `node flooding-server.testing.mjs` speaks stdio, with
// `http` it listens on PORT and prints when it does. Each tool is one flood. With TOGETHER=n, counted from 1, the call n over
// HTTP waits until the list n is asked for. It floods until the client gives it up, and then comes the list.
import { EventEmitter, once } from 'node:events';
import { createServer } from 'node:http';
import { json } from 'node:stream/consumers';
import { createInterface } from 'node:readline';

const NOTICE = { method: 'notifications/a' };
const rpc = (message) => JSON.stringify({ jsonrpc: '2.0', ...message });
const done = (id) => rpc({ id, result: { content: [{ type: 'text', text: 'done' }] } });
/** So many times the same message. */
const times = (count, message) => Array(count).fill(message);

/** The messages that each tool sends, as texts. `raw` ones are no events or lines, but sent as they are. */
const FLOODS = {
  newlines: (id) => ({ raw: '\n'.repeat(1024 * 1024), messages: [done(id)] }),
  words: (id) => ({ messages: [...times(100_000, 'x'), done(id)] }),
  notices: (id) => ({ messages: [...times(100_000, rpc(NOTICE)), done(id)] }),
  some_notices: (id) => ({ messages: [...times(5_000, rpc(NOTICE)), done(id)] }),
  some_words: (id) => ({ messages: [...times(20, 'x'), done(id)] }),
  batch: (id) => ({ body: `[${[...times(9_900, rpc(NOTICE)), done(id)].join(',')}]` }),
  blocks: (id) => ({ messages: [rpc({ id, result: { content: times(24_000, {}) } })] }),
  // Valid, and in a field that nobody reads not.
  audience: (id) => ({
    messages: [
      rpc({ id, result: { content: [{ type: 'text', text: 'done', annotations: { audience: times(40_000, 0) } }] } }),
    ],
  }),
};

const inputSchema = { type: 'object' };
const LISTS = {
  good: Object.keys(FLOODS).map((name) => ({ name, inputSchema, annotations: { readOnlyHint: true } })),
  // As many parts as a message may have.
  bad: times(24_000, {}),
  icons: [{ name: 'a', inputSchema, icons: times(24_000, {}) }],
};

const RESULTS = {
  initialize: {
    protocolVersion: '2025-06-18',
    capabilities: { tools: {} },
    serverInfo: { name: 'flooding', version: '1' },
  },
  'tools/list': { tools: LISTS[process.env.LIST ?? 'good'] },
};

/** What is sent for a request. */
const answer = ({ id, method, params }) =>
  method === 'tools/call' ? FLOODS[params.name](id) : { messages: [rpc({ id, result: RESULTS[method] ?? {} })] };

const events = new EventEmitter();
const asked = once(events, 'asked');
const ended = once(events, 'ended');
const counts = { 'tools/list': 0, 'tools/call': 0 };

/** Resolves when the message may be answered. True: its answer has no end (TOGETHER). */
async function untilDue({ method }, response) {
  if (++counts[method] !== Number(process.env.TOGETHER)) return false;
  const isCall = method === 'tools/call';
  if (isCall) response.on('close', () => events.emit('ended'));
  else events.emit('asked');
  await (isCall ? asked : ended);
  return isCall;
}

function listen() {
  const http = createServer(async (request, response) => {
    const message = request.method === 'POST' ? await json(request) : {};
    if (request.method !== 'POST') return response.writeHead(405).end();
    if (message.id === undefined) return response.writeHead(202).end();
    const isEndless = await untilDue(message, response);
    const { raw = '', messages = [], body } = answer(message);
    if (body !== undefined) return response.writeHead(200, { 'content-type': 'application/json' }).end(body);
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write(raw + messages.map((text) => `data:${text}\n\n`).join(''));
    if (!isEndless) response.end();
  });
  http.listen(process.env.PORT, '127.0.0.1', () => console.log(`listening on port ${http.address().port}`));
}

if (process.argv[2] === 'http') listen();
else
  createInterface({ input: process.stdin }).on('line', (line) => {
    const message = JSON.parse(line);
    if (message.id === undefined) return;
    const { raw = '', messages = [] } = answer(message);
    process.stdout.write(raw + messages.map((text) => `${text}\n`).join(''));
  });
