import { SpanKind, traced, traceHeaders } from '#platform';
import type { McpConnection, ToolRequest } from './connection.ts';
import type { ServerResult } from './read-result.ts';
import type { ToolServer } from './tool-server.ts';

/** Makes one call of a server's tool in a span. The server gets the trace context in `_meta`, as MCP defines it (SEP-414). */
export function tracedToolCall(
  server: ToolServer,
  request: ToolRequest,
  connection: McpConnection,
): Promise<ServerResult> {
  return traced(
    `tools/call ${request.name}`,
    () => ({
      kind: SpanKind.CLIENT,
      attributes: {
        'mcp.method.name': 'tools/call',
        'gen_ai.tool.name': request.name,
        'gen_ai.tool.call.id': request.toolCallId,
        'network.transport': 'command' in server ? 'pipe' : 'tcp',
        'spool.tool_server': server.name,
      },
    }),
    (span) => {
      const meta = span ? { ...request.meta, ...traceHeaders() } : request.meta;
      return connection.call({ ...request, meta });
    },
  );
}
