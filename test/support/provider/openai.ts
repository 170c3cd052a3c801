import { z } from 'zod';
import { textOf, type Turn } from './asked.ts';
import type { Answer, Frames, Protocol, Read } from './protocol.ts';
import type { ErrorKind, Finish } from './script.ts';

const TOOL_NAME = /^[a-zA-Z0-9_-]{1,64}$/;

const content = z.union([z.string(), z.array(z.looseObject({ type: z.string(), text: z.string().optional() }))]);
const toolCall = z.looseObject({
  id: z.string(),
  type: z.literal('function'),
  function: z.looseObject({ name: z.string().regex(TOOL_NAME), arguments: z.string() }),
});
const message = z.discriminatedUnion('role', [
  z.looseObject({ role: z.enum(['system', 'developer', 'user']), content }),
  z.looseObject({
    role: z.literal('assistant'),
    content: content.nullish(),
    tool_calls: z.array(toolCall).min(1).optional(),
  }),
  z.looseObject({ role: z.literal('tool'), tool_call_id: z.string(), content }),
]);
const requestSchema = z.looseObject({
  model: z.string().min(1),
  messages: z.array(message).min(1),
  tools: z
    .array(
      z.looseObject({ type: z.literal('function'), function: z.looseObject({ name: z.string().regex(TOOL_NAME) }) }),
    )
    .min(1)
    .optional(),
  stream: z.literal(true, { error: 'only streams are scripted' }),
  stream_options: z.looseObject({ include_usage: z.boolean().optional() }).optional(),
});
type Request = z.infer<typeof requestSchema>;

const FINISH: Record<Finish, string> = {
  stop: 'stop',
  'tool-calls': 'tool_calls',
  length: 'length',
  'content-filter': 'content_filter',
};

type WireError = [status: number, type: string, code: string | null, message: string];
const ERRORS: Record<ErrorKind, WireError> = {
  invalid: [400, 'invalid_request_error', null, 'The request is invalid.'],
  unauthorized: [401, 'invalid_request_error', 'invalid_api_key', 'Incorrect API key provided.'],
  forbidden: [403, 'invalid_request_error', 'model_not_allowed', 'This project may not use the model.'],
  'not-found': [
    404,
    'invalid_request_error',
    'model_not_found',
    'The model does not exist or you have no access to it.',
  ],
  'too-long': [
    400,
    'invalid_request_error',
    'context_length_exceeded',
    "This model's maximum context length is 128000 tokens. However, your messages resulted in 250000 tokens.",
  ],
  'rate-limited': [429, 'tokens', 'rate_limit_exceeded', 'Rate limit reached. Please try again later.'],
  'no-quota': [429, 'insufficient_quota', 'insufficient_quota', 'You exceeded your current quota.'],
  'server-error': [500, 'server_error', null, 'The server had an error while processing your request.'],
  overloaded: [503, 'server_error', null, 'The engine is currently overloaded, please try again later.'],
};

/** Chat completions, as streams. */
export const openai: Protocol = {
  name: 'openai',
  path: '/openai/v1/chat/completions',
  idHeader: 'x-request-id',
  toolCallId: (id) => `call_${id}`,
  keyOf: ({ authorization }) => /^Bearer (.+)$/.exec(authorization ?? '')?.[1],
  read: (body) => {
    const parsed = requestSchema.safeParse(body);
    if (!parsed.success) return z.prettifyError(parsed.error);
    return problemOf(parsed.data) ?? readRequest(parsed.data);
  },
  error: (kind, message) => {
    const [status, type, code, usual] = ERRORS[kind];
    return { status, body: { error: { message: message ?? usual, type, param: null, code } } };
  },
  errorEvent: (kind, body = openai.error(kind).body) => event(body),
};

const event = (data: unknown): string => `data: ${JSON.stringify(data)}\n\n`;

/** Each call must have its result before anything else is said, and each result its call. */
function problemOf({ messages }: Request): string | undefined {
  let unanswered = new Set<string>();
  for (const [i, one] of messages.entries()) {
    if (one.role === 'tool') {
      if (unanswered.delete(one.tool_call_id)) continue;
      return `Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls' (messages.[${i}].role).`;
    }
    if (unanswered.size > 0) break;
    if (one.role === 'assistant') unanswered = new Set(one.tool_calls?.map(({ id }) => id));
  }
  if (unanswered.size === 0) return undefined;
  return `An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: ${[...unanswered].join(', ')}`;
}

function readRequest({ model, messages, stream_options }: Request): Read {
  return {
    model,
    turns: messages.flatMap((one): Turn[] => {
      if (one.role === 'assistant') return [{ role: 'assistant' }];
      if (one.role === 'tool') return [{ role: 'tool', text: textOf(one.content) }];
      if (one.role !== 'user') return [];
      const texts = typeof one.content === 'string' ? [one.content] : one.content.flatMap(({ text }) => text ?? []);
      return [{ role: 'user', texts }];
    }),
    frames: (answer) => framesOf(answer, stream_options?.include_usage === true),
  };
}

function framesOf(answer: Answer, withUsage: boolean): Frames {
  const chunk = (choices: unknown[], usage: unknown = null): string =>
    event({
      id: `chatcmpl-${answer.id}`,
      object: 'chat.completion.chunk',
      created: Math.floor(Date.now() / 1000),
      model: answer.model,
      choices,
      ...(withUsage ? { usage } : {}),
    });
  const delta = (said: object, finish: string | null = null): string =>
    chunk([{ index: 0, delta: said, finish_reason: finish }]);
  const calls = answer.toolCalls.flatMap(({ id, name, pieces }, index) =>
    pieces.map((piece, i) => {
      const head = { index, id, type: 'function', function: { name, arguments: '' } };
      const rest = { index, function: { arguments: piece } };
      return (i === 0 ? delta({ tool_calls: [head] }) : '') + delta({ tool_calls: [rest] });
    }),
  );
  return {
    before: delta({ role: 'assistant', content: answer.text.length > 0 ? '' : null }),
    pieces: [
      ...(answer.thinking?.pieces ?? []).map((piece) => delta({ reasoning_content: piece })),
      ...answer.text.map((piece) => delta({ content: piece })),
      ...calls,
    ],
    after: `${delta({}, FINISH[answer.finish])}${withUsage ? chunk([], usageOf(answer)) : ''}data: [DONE]\n\n`,
  };
}

function usageOf({ usage }: Answer): object {
  return {
    prompt_tokens: usage.inputTokens,
    completion_tokens: usage.outputTokens,
    total_tokens: usage.inputTokens + usage.outputTokens,
    prompt_tokens_details: { cached_tokens: usage.cachedInputTokens },
    completion_tokens_details: { reasoning_tokens: usage.reasoningTokens },
  };
}
