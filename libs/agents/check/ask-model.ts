import type { TokenUsage } from '#domain';
import { newId } from '#platform';
import {
  HarnessError,
  type FolderFile,
  type Harness,
  type RunContext,
  type StepEvent,
  type Tool,
  type TranscriptMessage,
} from '../harness.ts';
import { answerTokens, type ModelChoice } from '../model/model-settings.ts';

/** The most tokens of one answer of a check, without the `thinkingTokens` of the manifest. */
const CHECK_TOKENS = 1_024;
const INSTRUCTIONS = 'This is a test of the connection. Do exactly what the user says, and nothing else.';

export const CALLED = 'spool_check';
/** The tool that the model is asked to call. It is never executed. */
export const MADE_UP: Tool = {
  name: CALLED,
  title: 'Check',
  description: 'Notes one word. Part of a test of the connection; it changes nothing.',
  inputSchema: { type: 'object', properties: { word: { type: 'string' } }, required: ['word'] },
  policy: 'allow',
  idempotent: true,
  execute: () => Promise.resolve({ text: '', isError: false }),
};

/** A red PNG of 64 × 64 pixels. Some models refuse smaller images. */
const RED = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAEAAAABACAIAAAAlC+aJAAAAS0lEQVR42u3PQQkAAAgAsetfWiP4FgYrsKZeS0BAQEBAQEBAQEBA' +
    'QEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEDgsqnc8OJg6Ln3AAAAAElFTkSuQmCC',
  'base64',
);

export const RED_FILE: FolderFile = {
  fileId: newId(),
  path: 'attachments/red.png',
  mimeType: 'image/png',
  size: RED.length,
  readOnly: true,
};

type Message = Extract<StepEvent, { type: 'message' }>;
interface Answered {
  message: Message;
  /** The number of text deltas. */
  pieces: number;
  hasThoughts: boolean;
  usage: TokenUsage | null;
}
export type Asked = Answered | HarnessError;

export const user = (text: string, fileIds: string[] = []): TranscriptMessage => ({ role: 'user', text, fileIds });

export interface AskedModel {
  harness: Harness;
  context: RunContext;
  model: ModelChoice;
}

/** Returns a function that asks the model once, as a step of a Run does. It returns a HarnessError and throws other errors. */
export function askWith({ harness, context, model }: AskedModel) {
  const thinkingTokens = model.settings?.thinkingTokens ?? 0;
  const maxOutputTokens = Math.min(answerTokens(model), thinkingTokens + CHECK_TOKENS);
  const limited = { ...model, settings: { ...model.settings, maxOutputTokens } };
  const manifest = { ...context.manifest, instructions: INSTRUCTIONS, model: limited };
  return async (
    transcript: readonly TranscriptMessage[],
    tools: readonly Tool[] = [],
    files: readonly FolderFile[] = [],
  ): Promise<Asked> => {
    const step = harness.step({
      ...context,
      manifest,
      transcript,
      tools,
      files: { list: () => Promise.resolve(files), read: () => Promise.resolve(bytesOf(RED)) },
      makeRoom: () => undefined,
    });
    try {
      return await readStep(step);
    } catch (error) {
      if (error instanceof HarnessError) return error;
      throw error;
    }
  };
}

async function* bytesOf(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}

async function readStep(step: AsyncIterable<StepEvent>): Promise<Answered> {
  const answered: Omit<Answered, 'message'> = { pieces: 0, hasThoughts: false, usage: null };
  let message: Message = { type: 'message', text: '', toolCalls: [] };
  for await (const event of step) {
    if (event.type === 'text') answered.pieces++;
    else if (event.type === 'thinking') answered.hasThoughts = true;
    else if (event.type === 'usage') answered.usage = event;
    else message = event;
  }
  return { ...answered, message };
}

/** Sends a result for each tool call and returns the next answer; null if the model called no tool. */
export async function resultsOf(
  asked: Asked,
  ask: (messages: readonly TranscriptMessage[]) => Promise<Asked>,
): Promise<Asked | null> {
  if (asked instanceof HarnessError || asked.message.toolCalls.length === 0) return null;
  const { type: _, toolCalls, ...said } = asked.message;
  const calls = toolCalls.map((call) => ({ ...call, toolCallId: newId(), title: call.toolName }));
  const results = calls.map(({ toolCallId, toolName }): TranscriptMessage => ({
    ...{ role: 'tool', toolCallId, toolName, outcome: 'ok' },
    result: 'The word is noted. Call no more tools; answer with the word done.',
  }));
  const usage = asked.usage === null ? {} : { usage: asked.usage };
  return ask([{ role: 'assistant', ...said, toolCalls: calls, ...usage }, ...results]);
}
