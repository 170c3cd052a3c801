import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type Server as HttpServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import {
  CallToolRequestSchema,
  ListToolsRequestSchema,
  type CallToolRequest,
} from '@modelcontextprotocol/sdk/types.js';
import { Holds, type Hold } from './holds.ts';
import type { ToolName } from './fake-provider-calls.ts';

/** A call as the tool server sees it. */
export interface RecordedUse {
  threadId: string;
  runId: string;
  toolCallId: string;
  toolName: ToolName;
  input: { n: number; name: string };
  tookEffect: boolean;
  openedAt: number;
  /** By Date.now(): when it was cancelled, or its request's connection was closed or its answer sent. Null before. */
  closedAt: number | null;
}

/** Where a call can be held; it takes effect between them. */
export type ToolPoint = 'asked' | 'done';

/** Nothing is said of `act` and `note`, so that they are not idempotent and a person is asked; the manifest allows `act`. */
const TOOLS: Record<ToolName, object> = { act: {}, note: {}, lookup: { annotations: { readOnlyHint: true } } };

/** The text of a call's result. */
const toolResult = (toolName: ToolName, { n }: RecordedUse['input']): string => `${toolName} ${n} is done.`;

/** An MCP server over HTTP in the test's process, that knows each call and whether it took effect. */
export class RecordingTools {
  readonly uses: RecordedUse[] = [];
  private readonly holds = new Holds<ToolPoint, RecordedUse>();
  private readonly sessions = new Map<string, StreamableHTTPServerTransport>();
  /** Resolved once the request that carries the call has no connection any more, by `toolCallId`. */
  private readonly gone = new Map<string, Promise<void>>();

  private constructor(private readonly http: HttpServer) {}

  static async start(): Promise<RecordingTools> {
    const http = createServer((request, response) => {
      tools.answer(request, response).catch((error: unknown) => response.destroy(error as Error));
    });
    const tools = new RecordingTools(http);
    await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
    return tools;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.http.address() as AddressInfo).port}/mcp`;
  }

  hold(point: ToolPoint, wanted: (use: RecordedUse) => boolean): Hold<RecordedUse> {
    return this.holds.hold(point, wanted);
  }

  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.http.close(resolve));
    this.http.closeAllConnections();
    await closed;
  }

  private async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = request.method === 'POST' ? await json(request) : undefined;
    const { toolCallId } = metaOf(body);
    if (toolCallId !== undefined)
      this.gone.set(toolCallId, new Promise((resolve) => response.once('close', () => resolve())));
    const id = request.headers['mcp-session-id'] as string | undefined;
    const known = id === undefined ? await this.newSession() : this.sessions.get(id);
    if (known === undefined) return void response.writeHead(404).end();
    await known.handleRequest(request, response, body);
    if (request.method === 'DELETE') this.sessions.delete(id!);
  }

  private async newSession(): Promise<StreamableHTTPServerTransport> {
    const transport: StreamableHTTPServerTransport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (id) => void this.sessions.set(id, transport),
    });
    const server = new Server({ name: 'recording', version: '1' }, { capabilities: { tools: {} } });
    server.setRequestHandler(ListToolsRequestSchema, () => ({
      tools: Object.entries(TOOLS).map(([name, more]) => ({ name, inputSchema: { type: 'object' as const }, ...more })),
    }));
    server.setRequestHandler(CallToolRequestSchema, (request, { signal }) => this.use(request, signal));
    await server.connect(transport);
    return transport;
  }

  private async use(request: CallToolRequest, signal: AbortSignal) {
    const { toolCallId = '', runId = '', threadId = '' } = metaOf(request);
    const toolName = request.params.name as ToolName;
    const input = request.params.arguments as RecordedUse['input'];
    const use: RecordedUse = {
      ...{ threadId, runId, toolCallId, toolName, input },
      ...{ tookEffect: false, openedAt: Date.now(), closedAt: null },
    };
    this.uses.push(use);
    const cancelled = new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
    const gone = Promise.race([this.gone.get(toolCallId), cancelled]).then(() => void (use.closedAt ??= Date.now()));
    await this.holds.pass('asked', use, gone);
    if (use.closedAt === null) {
      use.tookEffect = true;
      await this.holds.pass('done', use, gone);
    }
    return { content: [{ type: 'text' as const, text: toolResult(toolName, input) }] };
  }
}

type Meta = Partial<Record<'toolCallId' | 'runId' | 'threadId', string>>;

/** What Spool tells of a call beside its input (docs/tools.md). */
function metaOf(message: unknown): Meta {
  const { _meta = {} } = (message as { params?: { _meta?: Record<string, string> } } | undefined)?.params ?? {};
  const told = Object.entries(_meta).filter(([name]) => name.startsWith('spool/'));
  return Object.fromEntries(told.map(([name, value]) => [name.slice('spool/'.length), value]));
}
