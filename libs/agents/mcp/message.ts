import { ErrorCode, JSONRPCMessageSchema, type JSONRPCMessage } from '@modelcontextprotocol/sdk/types.js';

export type JsonMap = Record<string, unknown>;

/** Whether a JSON value is a map, and neither null nor a list. */
export function isMap(value: unknown): value is JsonMap {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Returns the map without entries that are null: to a tool server, null often means absent. */
export function withoutNulls(map: JsonMap): JsonMap {
  return Object.fromEntries(Object.entries(map).filter(([, value]) => value !== null));
}

/**
 * Reads one message of a tool server from its text. Skips a byte order mark before it. Throws an error for a text that is no
 * message.
 */
export function parseMessage(text: string): JSONRPCMessage {
  // `trim` removes a byte order mark, which JSON.parse refuses.
  return JSONRPCMessageSchema.parse(tidyMessage(JSON.parse(text.trim())));
}

/**
 * Returns a JSON-RPC message as the schemas of the SDK want it: without unknown or null fields, and with an error that has a
 * code and a message. The SDK drops other messages, and their calls then wait until their time is over.
 */
export function tidyMessage(value: unknown): unknown {
  // Without a version, a line of a log could be taken for a result.
  if (!isMap(value) || value['jsonrpc'] !== '2.0') return value;
  const { id, method, params, result, error } = value;
  const head = { jsonrpc: '2.0', ...(id !== null && id !== undefined && { id }) };
  if (typeof method === 'string') return { ...head, method, ...(isMap(params) && { params: tidyParams(params) }) };
  if (error !== null && error !== undefined) return { ...head, error: tidyError(error) };
  return 'result' in value ? { ...head, result: tidyResult(result) } : value;
}

function tidyParams(params: JsonMap): JsonMap {
  const { _meta: meta, ...rest } = withoutNulls(params);
  return isMap(meta) ? { ...rest, _meta: withoutNulls(meta) } : rest;
}

function tidyError(error: unknown): JsonMap {
  const { code, message, data } = isMap(error) ? error : { message: error };
  const number = typeof code === 'string' && code.trim() !== '' ? Number(code) : code;
  const isText = typeof message === 'string' && message !== '';
  return {
    code: Number.isSafeInteger(number) ? number : ErrorCode.InternalError,
    message: isText ? message : 'The tool server gave no reason.',
    ...(data !== null && data !== undefined && { data }),
  };
}

/** Nobody reads the `_meta` of a result. What is no map is checked where the content of the result is. */
function tidyResult(result: unknown): JsonMap {
  if (!isMap(result)) return result === null ? {} : { content: result };
  const { _meta, ...rest } = withoutNulls(result);
  return 'protocolVersion' in rest ? tidyInitialize(rest) : rest;
}

/** The answer to `initialize`, with what is used of it. */
function tidyInitialize({ protocolVersion, capabilities, serverInfo }: JsonMap): JsonMap {
  const { tools = null } = isMap(capabilities) ? capabilities : {};
  const { name, version } = isMap(serverInfo) ? serverInfo : ({} as JsonMap);
  return {
    protocolVersion,
    capabilities: tools === null ? {} : { tools: {} },
    serverInfo: { name: textOf(name), version: textOf(version) },
  };
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');
