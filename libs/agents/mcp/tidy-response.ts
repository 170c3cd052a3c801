import { StreamableHTTPError } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { McpError } from '@modelcontextprotocol/sdk/types.js';
import { isMap, tidyMessage } from './message.ts';
import { tidyEvents } from './tidy-events.ts';

/**
 * Returns the HTTP response with messages that the SDK accepts. `id` is that of the request, null for a notification.
 * Throws McpError for a status of 400 or more if the body is a JSON-RPC error with this id; its cause has the status. An error
 * without the id may mean that the session is lost, so there the status decides.
 */
export async function tidyResponse(response: Response, id: unknown): Promise<Response> {
  if (response.body === null) return response;
  if (response.status >= 400 && id !== null) return refusalIn(response, id);
  if (response.ok && isEventStream(response)) return copyOf(response, response.body.pipeThrough(tidyEvents()));
  const json = response.json.bind(response);
  const tidyJson = async (): Promise<unknown> => {
    const message = tidyMessage(await json());
    // The response can only answer this request.
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

/** Returns the message in the text, or an empty map if it is not a message. */
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
