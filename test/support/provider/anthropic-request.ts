import { z } from 'zod';
import { thoughtKey, type GivenOut } from './protocol.ts';

const ID = /^[a-zA-Z0-9_-]+$/;
const TOOL_NAME = /^[a-zA-Z0-9_-]{1,128}$/;

/** A string stands for one block of text, an empty one for none. */
const inBlocks = <T extends z.ZodType>(blocks: T) =>
  z.preprocess((content) => {
    if (typeof content !== 'string') return content;
    return content === '' ? [] : [{ type: 'text', text: content }];
  }, blocks);

const text = z.looseObject({
  type: z.literal('text'),
  text: z.string().min(1, { error: 'text content blocks must be non-empty' }),
});
const file = z.looseObject({ type: z.enum(['image', 'document']), source: z.looseObject({ type: z.string() }) });
const userBlock = z.discriminatedUnion('type', [
  text,
  file,
  z.looseObject({
    type: z.literal('tool_result'),
    tool_use_id: z.string().regex(ID),
    content: inBlocks(z.array(z.discriminatedUnion('type', [text, file]))).optional(),
  }),
]);
const assistantBlock = z.discriminatedUnion('type', [
  text,
  z.looseObject({ type: z.literal('thinking'), thinking: z.string(), signature: z.string() }),
  z.looseObject({
    type: z.literal('tool_use'),
    id: z.string().regex(ID),
    name: z.string().regex(TOOL_NAME),
    input: z.record(z.string(), z.unknown(), { error: 'Input should be a valid dictionary' }),
  }),
]);
const message = z.discriminatedUnion('role', [
  z.looseObject({ role: z.literal('user'), content: inBlocks(z.array(userBlock).min(1)) }),
  z.looseObject({ role: z.literal('assistant'), content: inBlocks(z.array(assistantBlock).min(1)) }),
]);

export const requestSchema = z.looseObject({
  model: z.string().min(1),
  max_tokens: z.int().min(1),
  messages: z.array(message).min(1),
  thinking: z.looseObject({ type: z.string() }).optional(),
  tools: z.array(z.looseObject({ name: z.string().regex(TOOL_NAME) })).optional(),
  stream: z.literal(true, { error: 'only streams are scripted' }),
});
export type Request = z.infer<typeof requestSchema>;
type Message = Request['messages'][number];

/** What is wrong with the order of its messages, or with thinking that comes back, in the provider's words. */
export function problemOf({ messages, thinking }: Request, givenOut: GivenOut): string | undefined {
  if (messages[0]!.role !== 'user') return 'messages: first message must use the "user" role';
  if (messages.at(-1)!.role !== 'user') return 'The conversation must end with a user message.';
  for (const [i, one] of messages.entries()) {
    const problem =
      one.role === 'assistant'
        ? (unansweredUse(i, one, messages[i + 1]) ?? changedThinking(i, one, givenOut))
        : unaskedResult(i, one, messages[i - 1]);
    if (problem) return problem;
  }
  return thinking && thinking.type !== 'disabled' ? missingThinking(messages, givenOut) : undefined;
}

const usesOf = (one: Message | undefined): string[] =>
  one?.role !== 'assistant' ? [] : one.content.flatMap((block) => (block.type === 'tool_use' ? [block.id] : []));

/** Those that the next message does not begin with the results of. */
function unansweredUse(i: number, one: Message, next: Message | undefined): string | undefined {
  const blocks = next?.role === 'user' ? next.content : [];
  const end = blocks.findIndex(({ type }) => type !== 'tool_result');
  const first = blocks.slice(0, end < 0 ? blocks.length : end);
  const answered = new Set(first.flatMap((block) => (block.type === 'tool_result' ? [block.tool_use_id] : [])));
  const missing = usesOf(one).filter((id) => !answered.has(id));
  if (missing.length === 0) return undefined;
  return `messages.${i}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${missing.join(', ')}. Each \`tool_use\` block must have a corresponding \`tool_result\` block in the next message.`;
}

function unaskedResult(i: number, one: Message, previous: Message | undefined): string | undefined {
  const uses = usesOf(previous);
  if (one.role !== 'user') return undefined;
  const place = one.content.findIndex((block) => block.type === 'tool_result' && !uses.includes(block.tool_use_id));
  if (place < 0) return undefined;
  return `messages.${i}.content.${place}: unexpected \`tool_use_id\` found in \`tool_result\` blocks. Each \`tool_result\` block must have a corresponding \`tool_use\` block in the previous message.`;
}

function changedThinking(i: number, one: Message, { thoughts }: GivenOut): string | undefined {
  if (one.role !== 'assistant') return undefined;
  const place = one.content.findIndex(
    (block) => block.type === 'thinking' && !thoughts.has(thoughtKey(block.thinking, block.signature)),
  );
  return place < 0 ? undefined : `messages.${i}.content.${place}: Invalid \`signature\` in \`thinking\` block`;
}

/** Thinking that tool calls came with has to come back with them while their results do. */
function missingThinking(messages: readonly Message[], { signatures }: GivenOut): string | undefined {
  const i = messages.findLastIndex(({ role }) => role === 'assistant');
  const one = messages[i];
  const signature = usesOf(one).flatMap((id) => signatures.get(id) ?? [])[0];
  if (i !== messages.length - 2 || signature === undefined) return undefined;
  const [first] = one!.content as { type: string; signature?: string }[];
  if (first!.type === 'thinking' && first!.signature === signature) return undefined;
  return `messages.${i}.content.0.type: Expected \`thinking\` or \`redacted_thinking\`, but found \`${first!.type}\`. When \`thinking\` is enabled, a final \`assistant\` message must start with a thinking block.`;
}
