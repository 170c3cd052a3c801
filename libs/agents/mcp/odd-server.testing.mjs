// An MCP server that does what the public ones never do. `node odd-server.testing.mjs` speaks stdio, with `http` it listens
// on PORT and prints when it does. What happens to it goes to the file JOURNAL, a JSON line each.
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { appendFileSync, existsSync } from 'node:fs';
import { createServer } from 'node:http';
import { json } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { CallToolRequestSchema, ErrorCode, ListToolsRequestSchema, McpError } from '@modelcontextprotocol/sdk/types.js';

const { JOURNAL, SECRET } = process.env;
let headers = {};

const note = (entry) => JOURNAL && appendFileSync(JOURNAL, `${JSON.stringify({ pid: process.pid, ...entry })}\n`);
const text = (value) => ({ content: [{ type: 'text', text: value }] });
const object = { type: 'object' };
const LINGER = 'setInterval(() => {}, 1e6)';
const MEGABYTE = 1024 * 1024;
let amidList;

/** Once it has noted it, so that the next process does not. */
const crashOnce = () => {
  if (existsSync(`${JOURNAL}.crashed`)) return text('done after all');
  appendFileSync(`${JOURNAL}.crashed`, 'x');
  process.exit(1);
};

const TOOLS = {
  meta: {
    run: (params) => text(JSON.stringify(params._meta)),
    annotations: { readOnlyHint: true, title: 'The meta data' },
  },
  env: { run: () => text(JSON.stringify({ env: process.env, headers, cwd: process.cwd() })), title: `Tells ${SECRET}` },
  crash: { run: () => process.exit(1), description: 'x'.repeat(9_000) },
  crash_once: { run: crashOnce, annotations: { idempotentHint: true } },
  // Its own name is found by the manifest's patterns.
  'crash/once': { run: crashOnce },
  'crash once': { run: crashOnce },
  huge: { run: () => text('x'.repeat(100 * MEGABYTE)) },
  large: { run: () => text('x'.repeat(8 * MEGABYTE)) },
  hang: { run: () => new Promise(() => {}) },
  // Two children with so much memory each, and without an answer.
  grow: {
    run: ({ arguments: { megabytes } }) => {
      for (let i = 0; i < 2; i++) spawn(process.execPath, ['-e', `a = Buffer.alloc(${megabytes} << 20, 1); ${LINGER}`]);
      return new Promise(() => {});
    },
    annotations: { idempotentHint: true },
  },
  cut_off: { run: () => new Promise(() => {}) },
  freeze: { run: () => process.kill(process.pid, 'SIGSTOP') },
  refuse: {
    run: () => {
      throw new McpError(ErrorCode.InvalidParams, `${SECRET} is no ${'y'.repeat(5_000)}`);
    },
  },
  fail: { run: () => ({ ...text(`It failed with ${SECRET}.`), isError: true }) },
  // The SDK would not send it.
  nonsense: {
    run: (_params, { requestId: id }) => {
      process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id, result: { content: 5 } })}\n`);
      return new Promise(() => {});
    },
  },
  mixed: {
    run: () => ({
      content: [
        { type: 'audio', data: 'AAAA', mimeType: 'audio/wav' },
        { type: 'resource', resource: { uri: 'file:///a/b%2Fc.bin?x', blob: 'AAEC', mimeType: 'application/zip' } },
        { type: 'resource', resource: { uri: 'note://1', text: 'the note' } },
        { type: 'resource_link', uri: 'note://2', name: 'second' },
      ],
      structuredContent: { a: 1 },
    }),
  },
  add_tool: {
    run: async (_params, { server }) => {
      TOOLS.added = { run: () => text('added') };
      await server.sendToolListChanged();
      return text('ok');
    },
  },
  // Its result comes between the two pages of the next list.
  large_amid_list: {
    run: async (_params, { server }) => {
      await server.sendToolListChanged();
      await new Promise((resolve) => (amidList = resolve));
      return text('x'.repeat(8 * MEGABYTE));
    },
  },
  big_schema: { run: () => text(''), inputSchema: { type: 'object', description: 'x'.repeat(70_000) } },
  [`long_${'n'.repeat(80)}`]: { run: () => text('long') },
};

for (let i = 0; i < Number(process.env.MANY ?? 0); i++) TOOLS[`tool_${i}`] = { run: () => text('') };

function newServer() {
  const server = new Server({ name: 'odd', version: '1' }, { capabilities: { tools: { listChanged: true } } });
  server.setRequestHandler(ListToolsRequestSchema, async ({ params }) => {
    note({ did: 'list' });
    if (params?.cursor && amidList) {
      amidList();
      await sleep(300);
    }
    const { ENDLESS } = process.env;
    // Pages that never end, of so many bytes each; the tools are few.
    if (ENDLESS) {
      const description = 'x'.repeat(Number(ENDLESS));
      return {
        tools: [{ name: `endless_${params?.cursor ?? 0}`, inputSchema: object, description }],
        nextCursor: `${Number(params?.cursor ?? 0) + 1}`,
      };
    }
    if (process.env.DEEP) {
      let schema = object;
      for (let i = 0; i < 200; i++) schema = { ...object, properties: { a: schema } };
      return { tools: [{ name: 'deep', inputSchema: schema }] };
    }
    const all = Object.entries(TOOLS).map(([name, { run: _, ...tool }]) => ({ name, inputSchema: object, ...tool }));
    // Two pages.
    return params?.cursor ? { tools: all.slice(5) } : { tools: all.slice(0, 5), nextCursor: 'more' };
  });
  server.setRequestHandler(CallToolRequestSchema, ({ params }, { signal, requestId }) => {
    note({ did: 'call', name: params.name, meta: params._meta });
    signal.addEventListener('abort', () => note({ did: 'cancelled', name: params.name }));
    return TOOLS[params.name].run(params, { server, requestId });
  });
  return server;
}

async function listen() {
  const sessions = new Map();
  const http = createServer(async (request, response) => {
    headers = request.headers;
    const id = request.headers['mcp-session-id'];
    note({ did: 'request', method: request.method });
    const [, moved] = /^\/moved\?(.*)$/.exec(request.url) ?? [];
    if (moved !== undefined) return response.writeHead(307, { location: decodeURIComponent(moved) }).end();
    const body = request.method === 'POST' ? await json(request) : undefined;
    if (body?.params?.name === 'cut_off') setTimeout(() => response.end(), 50);
    if (id !== undefined && !sessions.has(id)) return response.writeHead(404).end('no such session');
    let transport = sessions.get(id);
    if (transport === undefined) {
      const enter = (session) => sessions.set(session, transport);
      transport = new StreamableHTTPServerTransport({ sessionIdGenerator: randomUUID, onsessioninitialized: enter });
      await newServer().connect(transport);
    }
    await transport.handleRequest(request, response, body);
    if (request.method === 'DELETE') sessions.delete(id);
  });
  http.listen(process.env.PORT, '127.0.0.1', () => console.log(`listening on port ${http.address().port}`));
}

note({ did: 'start' });
console.error(`A secret on standard error: ${SECRET}`);
if (process.argv[2] === 'http') await listen();
else {
  console.log('This line is no message.');
  // What it starts outlives it, unless somebody ends that too.
  if (process.argv[2] === 'leaving' || process.argv[2] === 'clinging') {
    const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1e6); process.on("SIGTERM", () => {})'], {
      stdio: 'inherit',
    });
    child.unref();
    note({ did: 'spawn', child: child.pid });
    if (process.argv[2] === 'clinging') {
      process.on('SIGTERM', () => note({ did: 'sigterm' }));
      setInterval(() => {}, 1e6);
    }
  }
  await newServer().connect(new StdioServerTransport());
}
