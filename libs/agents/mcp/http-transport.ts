import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { limitBody, type Fetch } from '#platform';

/** The field of a call's `_meta` by which its request is recognised. */
export const TOOL_CALL_ID = 'spool/toolCallId';

export interface HttpServer {
  url: string;
  headers: Record<string, string>;
  fetch: Fetch;
  maxMessageBytes: number;
  /** The answer to a call has ended, whether or not there was a result in it; with an error where it broke. */
  onAnswerEnd: (toolCallId: string, error?: unknown) => void;
}

/**
 * The SDK's transport, which waits for ever for the result of a call whose answer ended without one, and takes messages of
 * any size: so its `fetch` limits answers and tells of their end.
 */
export function httpTransport({ url, headers, fetch, maxMessageBytes, onAnswerEnd }: HttpServer) {
  const watched: Fetch = async (input, init) => {
    const response = await fetch(input, init);
    const toolCallId = toolCallIdOf(init?.body);
    return limitBody(response, {
      maxBytes: maxMessageBytes,
      ...(toolCallId !== null && { onEnd: (error?: unknown) => onAnswerEnd(toolCallId, error) }),
    });
  };
  return new StreamableHTTPClientTransport(new URL(url), { fetch: watched, requestInit: { headers } });
}

function toolCallIdOf(body: unknown): string | null {
  if (typeof body !== 'string') return null;
  const { params } = JSON.parse(body) as { params?: { _meta?: Record<string, unknown> } };
  const id = params?._meta?.[TOOL_CALL_ID];
  return typeof id === 'string' ? id : null;
}
