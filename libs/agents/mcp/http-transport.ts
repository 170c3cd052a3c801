import { AsyncLocalStorage } from 'node:async_hooks';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { limitBody, type Fetch } from '#platform';
import { JsonShape } from '../json-shape.ts';
import { isEventStream, tidyResponse } from './tidy-response.ts';

/** The field of a call's `_meta` by which its request is recognised. */
export const TOOL_CALL_ID = 'spool/toolCallId';

export interface HttpServer {
  url: string;
  headers: Record<string, string>;
  fetch: Fetch;
  maxMessageBytes: number;
  /** Of the answer to `tools/list`, each page. */
  maxListBytes: number;
  /** What came, a piece at a time. A throw ends the answer. */
  onBytes: (bytes: number) => void;
  /** How many messages came on a stream. A throw ends it. */
  onMessages: (count: number) => void;
  /** What came of an answer to `tools/list`, a piece at a time. */
  onListPage: (bytes: number) => void;
  /** Called for each answer. Returns what is told how much of its message has come. */
  holdMessage: () => (bytes: number) => void;
  /** The answer to `tools/list` broke. */
  onListEnd: (error: unknown) => void;
  /** The answer to a call has ended, whether or not there was a result in it; with an error where it broke. */
  onAnswerEnd: (toolCallId: string, error?: unknown) => void;
}

/**
 * The SDK's transport. By itself it waits for ever for a result when an answer ends without one, takes messages of any size,
 * and drops messages that do not fit its schemas. So its `fetch` limits and tidies answers and reports their end.
 */
export function httpTransport({ url, headers, fetch, ...bounds }: HttpServer) {
  const watched: Fetch = async (input, init) => {
    const response = await fetch(input, init);
    const { id, toolCallId, isList } = requestOf(init?.body === undefined ? undefined : sending.getStore());
    const shape = new JsonShape(isEventStream(response) ? 'event' : 'body');
    const first = new FirstByte();
    const limited = limitBody(response, {
      maxBytes: isList ? bounds.maxListBytes : bounds.maxMessageBytes,
      onPiece: (piece) => {
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

/** The message whose request is sent: parsing the body again would take as long as the message is large. */
const sending = new AsyncLocalStorage<unknown>();

const OPEN_LIST = 91;
/** Spaces and a byte order mark, which may stand before JSON. */
const SKIPPED = [9, 10, 13, 32, 0xef, 0xbb, 0xbf];

/**
 * Refuses a batch of messages by its first byte. The SDK would handle all of it in one turn, and the protocol has one message
 * as the answer to one request.
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
  /** Missing in a notification. */
  id?: string | number;
  method?: string;
  params?: { _meta?: Record<string, unknown> };
}

function requestOf(message: unknown): { id: string | number | null; toolCallId: string | null; isList: boolean } {
  const { id = null, method, params } = (message ?? {}) as Sent;
  const toolCallId = params?._meta?.[TOOL_CALL_ID];
  return { id, toolCallId: typeof toolCallId === 'string' ? toolCallId : null, isList: method === 'tools/list' };
}
