import { AsyncLocalStorage } from 'node:async_hooks';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { BOUNDS } from '#domain';
import { limitBody, type Fetch } from '#platform';
import { JsonShape } from '../json-shape.ts';
import { isEventStream, tidyResponse } from './tidy-response.ts';

/** The field of a call's `_meta` that identifies its request. */
export const TOOL_CALL_ID = 'spool/toolCallId';

export interface HttpServer {
  url: string;
  headers: Record<string, string>;
  fetch: Fetch;
  maxMessageBytes: number;
  /** The largest page of a list of tools, bytes. */
  maxListBytes: number;
  /** Called for each chunk with its bytes. A throw ends the answer. */
  onBytes: (bytes: number) => void;
  /** Called with the number of messages that came on a stream. A throw ends it. */
  onMessages: (count: number) => void;
  /** Called for each chunk of an answer to `tools/list` with its bytes. */
  onListPage: (bytes: number) => void;
  /** Called for each answer. Returns a callback that gets the number of its bytes so far. */
  holdMessage: () => (bytes: number) => void;
  /** Called if the answer to `tools/list` breaks off. */
  onListEnd: (error: unknown) => void;
  /** Called when the answer to a call has ended, with or without a result; with an error if it broke off. */
  onAnswerEnd: (toolCallId: string, error?: unknown) => void;
}

/**
 * Returns the SDK's transport with a `fetch` that limits and tidies answers and reports their end. Without it, the transport
 * waits forever if an answer ends without a result, accepts messages of any size, and drops those that do not match its schemas.
 */
export function httpTransport({ url, headers, fetch, ...bounds }: HttpServer) {
  const watched: Fetch = async (input, init) => {
    const response = await fetch(input, init);
    const { id, toolCallId, isList } = requestOf(init?.body === undefined ? undefined : sending.getStore());
    const shape = new JsonShape(isEventStream(response) ? 'event' : 'body');
    const first = new FirstByte();
    const limited = limitBody(response, {
      maxBytes: isList ? bounds.maxListBytes : bounds.maxMessageBytes,
      turn: { events: BOUNDS.messages.events.value, bytes: BOUNDS.messages.parsedTogether.value },
      onChunk: (piece) => {
        bounds.onBytes(piece.length);
        if (isList) bounds.onListPage(piece.length);
        shape.take(piece);
        if (response.ok) first.take(piece);
      },
      onHeld: bounds.holdMessage(),
      onEvents: bounds.onMessages,
      onEnd: (error) => {
        if (toolCallId !== null) bounds.onAnswerEnd(toolCallId, error);
        if (isList && error !== undefined) bounds.onListEnd(error);
      },
    });
    return tidyResponse(limited, id);
  };
  const transport = new StreamableHTTPClientTransport(new URL(url), { fetch: watched, requestInit: { headers } });
  const send = transport.send.bind(transport);
  transport.send = (message, options) => sending.run(message, () => send(message, options));
  return transport;
}

/** The message of the current request, so that its body is not parsed again. */
const sending = new AsyncLocalStorage<unknown>();

const OPEN_LIST = 91;
/** White space and a byte order mark, which may precede JSON. */
const SKIPPED = [9, 10, 13, 32, 0xef, 0xbb, 0xbf];

/**
 * Refuses a batch of messages by its first byte. The SDK would handle the whole batch in one turn, and the protocol allows only
 * one message in the answer to a request.
 */
class FirstByte {
  private isKnown = false;

  take(piece: Uint8Array): void {
    if (this.isKnown) return;
    const first = piece.find((byte) => !SKIPPED.includes(byte));
    this.isKnown = first !== undefined;
    if (first === OPEN_LIST) throw new Error('The tool server answered with a batch of messages.');
  }
}

interface Sent {
  /** Undefined for a notification. */
  id?: string | number;
  method?: string;
  params?: { _meta?: Record<string, unknown> };
}

function requestOf(message: unknown): { id: string | number | null; toolCallId: string | null; isList: boolean } {
  const { id = null, method, params } = (message ?? {}) as Sent;
  const toolCallId = params?._meta?.[TOOL_CALL_ID];
  return { id, toolCallId: typeof toolCallId === 'string' ? toolCallId : null, isList: method === 'tools/list' };
}
