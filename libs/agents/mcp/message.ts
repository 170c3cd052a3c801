import { ErrorCode, JSONRPCMessageSchema, type JSONRPCMessage } from '@modelcontextprotocol/sdk/types.js';

export type JsonMap = Record<string, unknown>;

/** Returns whether a JSON value is an object, and not null or a list. */
export function isMap(value: unknown): value is JsonMap {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Returns the map without null entries, because tool servers often send null for absent. */
export function withoutNulls(map: JsonMap): JsonMap {
  return Object.fromEntries(Object.entries(map).filter(([, value]) => value !== null));
}

/**
 * Parses one message of a tool server. Skips a byte order mark before it. Throws SyntaxError or ZodError for a text that is not
 * a message.
 */
export function parseMessage(text: string): JSONRPCMessage {
  // `trim` removes a byte order mark, which JSON.parse refuses.
  return JSONRPCMessageSchema.parse(tidyMessage(JSON.parse(text.trim())));
}

/**
 * Returns a JSON-RPC message that matches the schemas of the SDK: without unknown and null fields, and with a code and a message
 * in each error. The SDK drops other messages, and their calls then wait for their timeout.
 */
export function tidyMessage(value: unknown): unknown {
  // Unchanged, because without the version even a line of a log could look like a result.
  if (!isMap(value) || value['jsonrpc'] !== '2.0') return value;
  const { id, method, params, result, error } = value;
  const head = { jsonrpc: '2.0', ...(isPresent(id) && { id }) };
  if (typeof method === 'string') return { ...head, method, ...(isMap(params) && { params: tidyParams(params) }) };
  if (isPresent(error) && !(isPresent(result) && isBlank(error))) return { ...head, error: tidyError(error) };
  return 'result' in value ? { ...head, result: tidyResult(result) } : value;
}

/** To a tool server, null often means absent. */
export const isPresent = (value: unknown): boolean => value !== null && value !== undefined;

/** Whether an error says nothing: `{}`, `[]` as PHP writes it, or `{"code":0,"message":""}` as Go may write none. */
function isBlank(error: unknown): boolean {
  return typeof error === 'object' && error !== null ? Object.values(error).every((value) => !value) : !error;
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
    ...(isPresent(data) && { data }),
  };
}

/** Fields of answers to other requests than `initialize`. */
const OTHER_ANSWERS = ['content', 'structuredContent', 'toolResult', 'tools'];

/** Removes `_meta`, which Spool does not read. A result that is not a map is refused later, with its content. */
function tidyResult(result: unknown): JsonMap {
  if (!isMap(result)) return result === null ? {} : { content: result };
  const { _meta, ...rest } = withoutNulls(result);
  if ('protocolVersion' in rest && !OTHER_ANSWERS.some((field) => field in rest)) return tidyInitialize(rest);
  // In Go an empty list of tools is null.
  return result['tools'] === null ? { ...rest, tools: null } : rest;
}

/** Returns the answer to `initialize` with the fields that are used. */
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
