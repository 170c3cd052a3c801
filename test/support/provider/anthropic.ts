import { z } from 'zod';
import { problemOf, requestSchema, type Request } from './anthropic-request.ts';
import { textOf, type Turn } from './asked.ts';
import type { Answer, Frames, Protocol } from './protocol.ts';
import type { ErrorKind, Finish } from './script.ts';

const FINISH: Record<Finish, string> = {
  stop: 'end_turn',
  'tool-calls': 'tool_use',
  length: 'max_tokens',
  'content-filter': 'refusal',
};

type WireError = [status: number, type: string, message: string];
const ERRORS: Record<ErrorKind, WireError> = {
  invalid: [400, 'invalid_request_error', 'The request is invalid.'],
  unauthorized: [401, 'authentication_error', 'invalid x-api-key'],
  forbidden: [403, 'permission_error', 'Your API key does not have permission to use the specified resource.'],
  'not-found': [404, 'not_found_error', 'model not found'],
  'too-long': [400, 'invalid_request_error', 'prompt is too long: 250000 tokens > 200000 maximum'],
  'rate-limited': [429, 'rate_limit_error', "This request would exceed your organization's rate limit."],
  'no-quota': [400, 'invalid_request_error', 'Your credit balance is too low to access the API.'],
  'server-error': [500, 'api_error', 'Internal server error'],
  overloaded: [529, 'overloaded_error', 'Overloaded'],
};

/** Messages, as streams. */
export const anthropic: Protocol = {
  name: 'anthropic',
  path: '/anthropic/v1/messages',
  idHeader: 'request-id',
  toolCallId: (id) => `toolu_${id}`,
  keyOf: (headers) => headers['x-api-key'] as string | undefined,
  read: (body, headers, givenOut) => {
    if (headers['anthropic-version'] === undefined) return 'anthropic-version: header is required';
    const parsed = requestSchema.safeParse(body);
    if (!parsed.success) return z.prettifyError(parsed.error);
    const problem = problemOf(parsed.data, givenOut);
    return problem ?? { model: parsed.data.model, turns: parsed.data.messages.flatMap(turnsOf), frames: framesOf };
  },
  error: (kind, message) => {
    const [status, type, usual] = ERRORS[kind];
    return { status, body: { type: 'error', error: { type, message: message ?? usual } } };
  },
  errorEvent: (kind, body = anthropic.error(kind).body) => event(body as { type: string }),
};

const event = (data: { type: string; [field: string]: unknown }): string =>
  `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`;

function turnsOf({ role, content }: Request['messages'][number]): Turn[] {
  if (role === 'assistant') return [{ role: 'assistant' }];
  const results = content.flatMap((block): Turn[] =>
    block.type === 'tool_result' ? [{ role: 'tool', text: textOf(block.content ?? []) }] : [],
  );
  const texts = content.flatMap((block) => (block.type === 'text' ? [block.text] : []));
  return results.length < content.length ? [...results, { role: 'user', texts }] : results;
}

function framesOf(answer: Answer): Frames {
  const { thinking, text, toolCalls, usage } = answer;
  const input = {
    input_tokens: usage.inputTokens - usage.cachedInputTokens,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: usage.cachedInputTokens,
  };
  const blocks: Block[] = [];
  if (thinking) {
    blocks.push({
      start: { type: 'thinking', thinking: '', signature: '' },
      deltas: thinking.pieces.map((piece) => ({ type: 'thinking_delta', thinking: piece })),
      last: { type: 'signature_delta', signature: thinking.signature },
    });
  }
  if (text.length > 0) {
    const deltas = text.map((piece) => ({ type: 'text_delta', text: piece }));
    blocks.push({ start: { type: 'text', text: '' }, deltas });
  }
  for (const { id, name, pieces } of toolCalls) {
    const deltas = pieces.map((piece) => ({ type: 'input_json_delta', partial_json: piece }));
    blocks.push({ start: { type: 'tool_use', id, name, input: {} }, deltas });
  }
  const message = {
    ...{ id: `msg_${answer.id}`, type: 'message', role: 'assistant', model: answer.model, content: [] },
    ...{ stop_reason: null, stop_sequence: null, usage: { ...input, output_tokens: 1 } },
  };
  const output = {
    output_tokens: usage.outputTokens,
    output_tokens_details: { thinking_tokens: usage.reasoningTokens },
  };
  return {
    before: event({ type: 'message_start', message }) + event({ type: 'ping' }),
    pieces: blocks.flatMap(blockEvents),
    after:
      event({
        type: 'message_delta',
        delta: { stop_reason: FINISH[answer.finish], stop_sequence: null },
        usage: { ...input, ...output },
      }) + event({ type: 'message_stop' }),
  };
}

interface Block {
  start: object;
  deltas: object[];
  /** Sent with the last of them. */
  last?: object;
}

function blockEvents({ start, deltas, last }: Block, index: number): string[] {
  const send = (type: string, data: object): string => event({ type, index, ...data });
  return deltas.map((delta, i) => {
    const opening = i === 0 ? send('content_block_start', { content_block: start }) : '';
    const signing = last ? send('content_block_delta', { delta: last }) : '';
    const closing = i === deltas.length - 1 ? signing + send('content_block_stop', {}) : '';
    return opening + send('content_block_delta', { delta }) + closing;
  });
}
