import type { OptionalField, Quirks } from './server-profiles.ts';
import { newRoom, toOpenApiSchema, type SchemaRoom } from './tool-schemas.ts';

/** The body of a request, as the provider's package makes it. */
export type RequestBody = Record<string, unknown>;
type Message = Record<string, unknown>;

/** The field of a message that names the field for its reasoning. `fitRequest` removes it. */
export const REASONING_FIELD = 'spool_reasoning_field';

/** Stands between a tool's result and a user message if the server requires alternating roles. */
const UNDERSTOOD: Message = { role: 'assistant', content: 'Understood.' };

/** Returns the request in the form that its server accepts. Idempotent. */
export function fitRequest(body: RequestBody, quirks: Quirks): RequestBody {
  const { max_tokens: maxTokens, max_completion_tokens: limit = maxTokens, messages, tools, ...rest } = body;
  const room = newRoom();
  const kept = Object.entries(rest).filter(([name]) => !quirks.leaveOut.includes(name as OptionalField));
  return {
    ...Object.fromEntries(kept),
    ...(limit === undefined || quirks.answerLimit === 'none' ? {} : { [quirks.answerLimit]: limit }),
    ...(Array.isArray(messages) ? { messages: fitMessages(messages as Message[], quirks) } : {}),
    ...(Array.isArray(tools) ? { tools: tools.map((tool: Tool) => fitTool(tool, quirks, room)) } : {}),
  };
}

function fitMessages(messages: readonly Message[], quirks: Quirks): Message[] {
  return messages.flatMap((message, i) => {
    const isUnanswered = message.role === 'user' && messages[i - 1]?.role === 'tool';
    const before = isUnanswered && quirks.roles === 'alternating' ? [UNDERSTOOD] : [];
    return [...before, fitMessage(message, quirks)];
  });
}

/** Moves the reasoning to the field of the server: the package always writes `reasoning_content`. */
function fitMessage(message: Message, { reasoning: which }: Quirks): Message {
  if (message.role !== 'assistant') return message;
  const { [REASONING_FIELD]: named, reasoning_content: written, reasoning: renamed, ...rest } = message;
  if (which === 'none') return rest;
  const field = named === 'reasoning' || renamed !== undefined ? 'reasoning' : 'reasoning_content';
  // Servers that require all reasoning accept an empty text for a message that has none.
  const text = renamed ?? written ?? (which === 'all' && rest.tool_calls !== undefined ? '' : undefined);
  return text === undefined ? rest : { ...rest, [field]: text };
}

interface Tool {
  function?: { parameters?: Record<string, unknown> };
}

function fitTool(tool: Tool, { schemas }: Quirks, room: SchemaRoom): Tool {
  if (schemas === 'json-schema' || tool.function?.parameters === undefined) return tool;
  const { parameters, ...rest } = tool.function;
  const lowered = toOpenApiSchema(parameters, room);
  return { ...tool, function: { ...rest, ...(lowered === null ? {} : { parameters: lowered }) } };
}
