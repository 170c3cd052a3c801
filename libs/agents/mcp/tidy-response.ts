import { StreamableHTTPError } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { McpError } from '@modelcontextprotocol/sdk/types.js';
import { isMap, tidyMessage } from './message.ts';
import { tidyEvents } from './tidy-events.ts';

/**
 * Returns an HTTP answer whose messages are as the SDK takes them. `id` is that of the request, null for another message.
 * Throws McpError for a status of 400 or more whose body is a JSON-RPC error of this request; its cause has the status. Without
 * the id it may say that the session is lost, and then the status decides.
 */
export async function tidyResponse(response: Response, id: unknown): Promise<Response> {
  if (response.body === null) return response;
  if (response.status >= 400 && id !== null) return refusalIn(response, id);
  if (response.ok && isEventStream(response)) return copyOf(response, response.body.pipeThrough(tidyEvents()));
  const json = response.json.bind(response);
  const tidyJson = async (): Promise<unknown> => {
    const message = tidyMessage(await json());
    // It is the only request that this can be the answer to.
    return isMap(message) && 'error' in message ? { id, ...message } : message;
  };
  return Object.assign(response, { json: tidyJson });
}

export const isEventStream = ({ headers }: Response): boolean =>
  /^text\/event-stream\b/i.test(headers.get('content-type') ?? '');

async function refusalIn(response: Response, id: unknown): Promise<Response> {
  const text = await response.text();
  const message = messageIn(text);
  const { error } = message;
  if (!isMap(error) || String(message['id']) !== String(id)) return copyOf(response, text);
  const refusal = new McpError(Number(error['code']), String(error['message']), error['data']);
  throw Object.assign(refusal, { cause: new StreamableHTTPError(response.status, response.statusText) });
}

/** Returns an empty map for text that is no message. */
function messageIn(text: string): Record<string, unknown> {
  try {
    const message = tidyMessage(JSON.parse(text.trim()));
    return isMap(message) ? message : {};
  } catch {
    return {};
  }
}

function copyOf({ status, statusText, headers }: Response, body: ConstructorParameters<typeof Response>[0]): Response {
  return new Response(body, { status, statusText, headers });
}
