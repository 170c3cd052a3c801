// An MCP server whose every answer is as large as it may be. `node heavy-server.mjs` speaks stdio, with `http` it listens on
// PORT and prints when it does.
import { AsyncLocalStorage } from 'node:async_hooks';
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { json } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { CallToolRequestSchema, ListToolsRequestSchema } from '@modelcontextprotocol/sdk/types.js';

/** A little less than the largest message. */
const LARGEST = 16 * 1024 * 1024 - 4_096;

const object = { type: 'object' };
const text = (value) => ({ type: 'text', text: value });

/** A PNG by its beginning, of 3.75 MiB. */
const PHOTO = `iVBORw0KGgoA${'A'.repeat(5 * 1024 * 1024 - 4_108)}`;

const isHttp = process.argv[2] === 'http';
/** The answer to the call that is under way, over HTTP. */
const answering = new AsyncLocalStorage();

const BLOCKS = Array.from({ length: 24_000 }, () => ({}));

/** Writes past the SDK, and answers after that. */
async function flood(value) {
  const response = answering.getStore();
  // The SDK writes the headers of the response later. It fails if something else has been written before.
  while (response?.headersSent === false) await sleep(5);
  (response ?? process.stdout).write(value);
  return { content: [text('done')] };
}

const asMessages = (message, count) => (isHttp ? `data:${message}\n\n` : `${message}\n`).repeat(count);

const RESULTS = {
  text: () => ({ content: [text('x'.repeat(LARGEST))] }),
  letters: () => ({ content: [text('漢'.repeat(LARGEST / 3))] }),
  lines: () => ({ content: [text('\n'.repeat(LARGEST / 2))] }),
  mebibyte: () => ({ content: [text('\n'.repeat(1024 * 1024))] }),
  texts: () => ({ content: Array.from({ length: 8_000 }, () => text('x')) }),
  image: () => ({ content: [{ type: 'image', mimeType: 'image/png', data: 'A'.repeat(LARGEST - 100) }] }),
  // Each is shown to models that take images.
  photos: () => ({ content: Array.from({ length: 3 }, () => ({ type: 'image', mimeType: 'image/png', data: PHOTO })) }),
  fields: () => ({
    content: [],
    structuredContent: Object.fromEntries(Array.from({ length: 24_000 }, (_, i) => [`key ${i}`, i])),
  }),
  // The SDK would not send it.
  blocks: (id) => flood(asMessages(JSON.stringify({ jsonrpc: '2.0', id, result: { content: BLOCKS } }), 1)),
  newlines: () => flood('\n'.repeat(1024 * 1024)),
  words: () => flood(asMessages('x', 32_000)),
  notices: () => flood(asMessages('{"jsonrpc":"2.0","method":"a"}', 100_000)),
  input: () => ({ content: [text('taken')] }),
  pattern: () => ({ content: [text('taken')] }),
};
/** Takes for ever to check, if it is checked where it must not be. */
const pattern = { type: 'object', properties: { text: { type: 'string', pattern: '^(a+)+$' } } };

const tools = Object.keys(RESULTS).map((name) => ({
  name,
  inputSchema: name === 'pattern' ? pattern : object,
  annotations: { readOnlyHint: true },
}));
/** All of the 2 MiB that a list may have. */
for (let i = 0; i < 220; i++) {
  const properties = Object.fromEntries(Array.from({ length: 90 }, (_, key) => [`field ${key}`, { type: 'string' }]));
  const description = 'x'.repeat(6_000);
  tools.push({ name: `more_${i}`, description, inputSchema: { type: 'object', properties: i < 80 ? properties : {} } });
}

function newServer() {
  const server = new Server({ name: 'heavy', version: '1' }, { capabilities: { tools: {} } });
  server.setRequestHandler(ListToolsRequestSchema, () => ({ tools }));
  server.setRequestHandler(CallToolRequestSchema, ({ params }, { requestId }) => RESULTS[params.name](requestId));
  return server;
}

async function listen() {
  const sessions = new Map();
  const http = createServer(async (request, response) => {
    const id = request.headers['mcp-session-id'];
    const body = request.method === 'POST' ? await json(request) : undefined;
    let transport = sessions.get(id);
    if (transport === undefined) {
      const enter = (session) => sessions.set(session, transport);
      transport = new StreamableHTTPServerTransport({ sessionIdGenerator: randomUUID, onsessioninitialized: enter });
      await newServer().connect(transport);
    }
    await answering.run(response, () => transport.handleRequest(request, response, body));
  });
  http.listen(process.env.PORT, '127.0.0.1', () => console.log(`listening on port ${http.address().port}`));
}

if (isHttp) await listen();
else await newServer().connect(new StdioServerTransport());
