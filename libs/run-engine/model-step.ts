import {
  HarnessError,
  NoRoom,
  type Harness,
  type RequestedTool,
  type StepContext,
  type StepEvent,
  type Tool,
} from '#agents';
import { BOUNDS, createCitationFilter, storableText, type RecordedFact, type TokenUsage, type ToolCall } from '#domain';
import { newId, pauseIfLong, untilAborted } from '#platform';
import type { DeltaWriter } from './deltas.ts';
import { mapTexts, StorableDeltas } from './stored-text.ts';

/** The largest output of a step, with thinking and tool input, UTF-16 units. More is `output_too_large`. */
const MAX_OUTPUT = BOUNDS.answers.length.value;
const MAX_NAME = BOUNDS.answers.toolName.value;
const MAX_CALLS = BOUNDS.answers.calls.value;

type Usage = Extract<StepEvent, { type: 'usage' }>;
type Message = Extract<StepEvent, { type: 'message' }>;

/**
 * Runs one model step. Sends its deltas through the writer while it runs. Returns the unsent deltas, the message and the usage.
 * The joined deltas of a step are its message without citations.
 */
export async function takeModelStep(
  harness: Pick<Harness, 'step'>,
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
        // The continuation, such as a signature, has the same limit.
        refuseTooLarge(JSON.stringify(event.continuation ?? null).length);
        await pauseIfLong();
        const deltas = await writer.finish();
        return [...deltas, ...leftBy(event, { toolCalls, usage, thinking: thinking.raw, step: writer.step })];
      }
    }
    refuseTooLarge(text.raw.length + thinking.raw.length);
    // A harness may yield thousands of deltas without waiting for anything.
    await pauseIfLong();
  }
  throw crashed('A step ended without a message.');
}

/** Yields the step's events until the signal aborts. Throws a HarnessError or the signal's reason. */
async function* stepEvents(harness: Pick<Harness, 'step'>, context: StepContext): AsyncGenerator<StepEvent> {
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

/** Returns the error as a HarnessError or NoRoom. An unknown error is a crash of the harness. */
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
 * Sends the text or the thinking of a step, made storable and without provider-private citations
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

/** Makes a call with a new id, because ids of providers are not unique. */
function toToolCall({ toolName, toolInput, invalidInput }: RequestedTool, tools: ReadonlyMap<string, Tool>): ToolCall {
  const name = storableText(toolName).slice(0, MAX_NAME) || 'unnamed';
  const title = tools.get(name)?.title ?? name;
  const call = { toolCallId: newId(), toolName: name, title, toolInput: mapTexts(toolInput, storableText) };
  return invalidInput === undefined ? call : { ...call, invalidInput: storableText(invalidInput) };
}

interface StepOutput {
  toolCalls: ToolCall[];
  usage: Usage | null;
  thinking: string;
  step: number | undefined;
}

/** Returns the message and its usage. The message has the usage too, because budgets are computed from the transcript. */
function leftBy({ text, continuation, model }: Message, output: StepOutput): RecordedFact[] {
  const { toolCalls, thinking, step } = output;
  const usage = output.usage && toTokenUsage(output.usage);
  const data = {
    text: storableText(text),
    toolCalls,
    ...(continuation === undefined ? {} : mapTexts({ continuation }, storableText)),
    ...(usage ? { usage } : {}),
    ...(thinking === '' ? {} : { thinking: storableText(thinking) }),
    ...(step === undefined ? {} : { step }),
    ...(model === undefined ? {} : { model }),
  };
  const facts: RecordedFact[] = [{ type: 'assistant.message_added', data }];
  return usage ? [...facts, { type: 'usage.recorded', data: usage }] : facts;
}

function toTokenUsage({ inputTokens, outputTokens, cachedInputTokens }: Usage): TokenUsage {
  return { inputTokens, outputTokens, ...(cachedInputTokens === undefined ? {} : { cachedInputTokens }) };
}
