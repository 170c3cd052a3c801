import {
  HarnessError,
  NoRoom,
  type Harness,
  type RequestedTool,
  type StepContext,
  type StepEvent,
  type Tool,
} from '#agents';
import { createCitationFilter, storableText, type RecordedFact, type TokenUsage, type ToolCall } from '#domain';
import { newId, pauseIfLong, untilAborted } from '#platform';
import type { DeltaWriter } from './deltas.ts';
import { mapTexts, StorableDeltas } from './stored-text.ts';

/** What one step may say in all, thinking and tool input included, UTF-16 units; more is `output_too_large`. */
const MAX_OUTPUT = 1024 * 1024;
const MAX_NAME = 255;
/** Each is decided on, stored and answered by itself. */
const MAX_CALLS = 1_000;

type Usage = Extract<StepEvent, { type: 'usage' }>;
type Message = Extract<StepEvent, { type: 'message' }>;

/**
 * Runs one model step. Its deltas go out through the writer while it runs; the answer is what is left of them and what
 * the step leaves: its message and its usage. The deltas of a step, joined, are its message without citations.
 */
export async function takeModelStep(
  harness: Harness,
  context: StepContext,
  tools: ReadonlyMap<string, Tool>,
  writer: DeltaWriter,
): Promise<RecordedFact[]> {
  const text = new PublicText((delta) => writer.add('assistant.text_added', delta));
  const thinking = new PublicText((delta) => writer.add('assistant.thinking_added', delta));
  let usage: Usage | null = null;
  for await (const event of stepEvents(harness, context)) {
    switch (event.type) {
      case 'text':
        text.add(event.text);
        break;
      case 'thinking':
        thinking.add(event.text);
        break;
      case 'usage':
        usage = event;
        break;
      case 'message': {
        if (!event.text.startsWith(text.raw))
          throw crashed('The message of a step does not begin with its streamed text.');
        refuseTooLarge(event.text.length);
        if (event.toolCalls.length > MAX_CALLS) throw new HarnessError('output_too_large');
        text.add(event.text.slice(text.raw.length));
        thinking.end();
        text.end();
        const toolCalls: ToolCall[] = [];
        for (const requested of event.toolCalls) {
          toolCalls.push(toToolCall(requested, tools));
          await pauseIfLong();
        }
        refuseTooLarge(text.raw.length + thinking.raw.length + JSON.stringify(toolCalls).length);
        await pauseIfLong();
        // A signature is not worth a limit of its own, and nothing else is allowed to be that large.
        refuseTooLarge(JSON.stringify(event.continuation ?? null).length);
        await pauseIfLong();
        const deltas = await writer.finish();
        return [...deltas, ...leftBy(event, toolCalls, usage)];
      }
    }
    refuseTooLarge(text.raw.length + thinking.raw.length);
    // A harness may yield thousands of deltas without waiting for anything.
    await pauseIfLong();
  }
  throw crashed('A step ended without a message.');
}

/** The step's events until the signal aborts; what the harness throws is a HarnessError or the signal's reason. */
async function* stepEvents(harness: Harness, context: StepContext): AsyncGenerator<StepEvent> {
  const { signal } = context;
  const steps = harness.step(context)[Symbol.asyncIterator]();
  try {
    for (;;) {
      const next = await untilAborted(steps.next(), signal);
      if (next.done) return;
      yield next.value;
    }
  } catch (error) {
    signal.throwIfAborted();
    throw asHarnessError(error);
  } finally {
    // Not awaited: a harness that does not listen to the signal must not hold the slot.
    steps.return?.().catch(() => undefined);
  }
}

/** What a harness throws that the catalogue does not know is its crash. */
export function asHarnessError(error: unknown): HarnessError | NoRoom {
  return error instanceof HarnessError || error instanceof NoRoom
    ? error
    : crashed('The harness threw an error.', error);
}

function crashed(message: string, cause?: unknown): HarnessError {
  return new HarnessError('harness_crashed', { cause: new Error(message, { cause }) });
}

function refuseTooLarge(units: number): void {
  if (units > MAX_OUTPUT) throw new HarnessError('output_too_large');
}

/**
 * One kind of a step's text on its way out: storable, and without provider-private citations
 * (docs/spec/decisions.md#citation-markup).
 */
class PublicText {
  raw = '';
  private readonly storable = new StorableDeltas();
  private readonly citations = createCitationFilter();

  constructor(private readonly send: (delta: string) => void) {}

  add(delta: string): void {
    this.raw += delta;
    this.sendUnlessEmpty(this.citations.push(this.storable.push(delta)));
  }

  end(): void {
    this.sendUnlessEmpty(this.citations.push(this.storable.end()) + this.citations.end());
  }

  private sendUnlessEmpty(delta: string): void {
    if (delta !== '') this.send(delta);
  }
}

/** Ids are ours: unique for ever, whatever the provider calls its calls. */
function toToolCall({ toolName, toolInput, invalidInput }: RequestedTool, tools: ReadonlyMap<string, Tool>): ToolCall {
  const name = storableText(toolName).slice(0, MAX_NAME) || 'unnamed';
  const title = tools.get(name)?.title ?? name;
  const call = { toolCallId: newId(), toolName: name, title, toolInput: mapTexts(toolInput, storableText) };
  return invalidInput === undefined ? call : { ...call, invalidInput: storableText(invalidInput) };
}

/** The message, and its usage twice: with the message for budgets, which go by the transcript, and for the public log. */
function leftBy({ text, continuation }: Message, toolCalls: ToolCall[], used: Usage | null): RecordedFact[] {
  const usage = used && toTokenUsage(used);
  const kept = continuation === undefined ? {} : mapTexts({ continuation }, storableText);
  const data = { text: storableText(text), toolCalls, ...kept, ...(usage ? { usage } : {}) };
  const facts: RecordedFact[] = [{ type: 'assistant.message_added', data }];
  return usage ? [...facts, { type: 'usage.recorded', data: usage }] : facts;
}

function toTokenUsage({ inputTokens, outputTokens, cachedInputTokens }: Usage): TokenUsage {
  return { inputTokens, outputTokens, ...(cachedInputTokens === undefined ? {} : { cachedInputTokens }) };
}
