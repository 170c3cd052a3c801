import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';

/** 15 MB: the largest page that the releases before took. */
const DESCRIPTION = 'Describes itself at length. '.repeat(535_000);
/** A regular expression that backtracks for ever on the input that the model gives. */
const SLOW_SCHEMA = { type: 'object', properties: { text: { type: 'string', pattern: '^(a+)+$' } } };

export interface EndlessServer {
  url: string;
  slowUrl: string;
  pages: () => number;
  close: () => void;
}

/** An MCP server whose list of tools has no end. At `slow` it has one tool, whose schema takes for ever to check. */
export async function startEndlessServer(): Promise<EndlessServer> {
  let pages = 0;
  const server = createServer((request, response) => {
    void readJson(request).then((message) => {
      if (message?.id === undefined) return void response.writeHead(202).end();
      if (message.method === 'tools/list') pages++;
      const body = JSON.stringify({ jsonrpc: '2.0', id: message.id, result: resultOf(message, request.url, pages) });
      response.writeHead(200, { 'content-type': 'application/json' }).end(body);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  const close = (): void => {
    server.close();
    server.closeAllConnections();
  };
  return { url, slowUrl: `${url}slow`, pages: () => pages, close };
}

interface Message {
  id?: number | string;
  method: string;
  params?: { protocolVersion?: string };
}

async function readJson(request: IncomingMessage): Promise<Message | null> {
  let text = '';
  for await (const piece of request.setEncoding('utf8')) text += piece;
  return text === '' ? null : (JSON.parse(text) as Message);
}

function resultOf({ method, params }: Message, path: string | undefined, page: number): object {
  if (method === 'initialize') {
    const serverInfo = { name: 'endless', version: '1.0.0' };
    return { protocolVersion: params?.protocolVersion, capabilities: { tools: {} }, serverInfo };
  }
  if (method !== 'tools/list') return { content: [{ type: 'text', text: 'done' }] };
  if (path === '/slow') return { tools: [{ name: 'slow', description: 'Is slow.', inputSchema: SLOW_SCHEMA }] };
  const tool = { name: `tool_${page}`, description: DESCRIPTION, inputSchema: { type: 'object' } };
  return { tools: [tool], nextCursor: `${page + 1}` };
}
