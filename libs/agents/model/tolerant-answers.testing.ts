import type { StepEvent } from '../harness.ts';
import { HarnessError } from '../harness.ts';
import { allowing } from '../allowances.testing.ts';
import { modelHarness } from './model-harness.ts';
import type { OddityLog } from './oddities.ts';
import type { ModelChoice } from './model-settings.ts';
import { contextWith, env, manifestWith, apiKey } from './provider.testing.ts';

/** The result of a step with an answer. */
export interface Made {
  text?: string;
  thinking?: string;
  calls?: [name: string, input: unknown][];
  usage?: [input: number, output: number, cached?: number];
  /** The code of the step's failure. */
  code?: string;
  /** Whether Spool closed the connection of the answer. */
  closed: boolean;
}

export interface Sent {
  provider: ModelChoice['provider'];
  /** The chunks of the answer, each sent by itself. */
  pieces: readonly Uint8Array[];
  /** Whether the server closes the connection after them. Default: true. */
  ends?: boolean;
  /** Sent repeatedly while the connection is open. */
  comment?: string;
  logger?: OddityLog;
  model?: string;
  /** Called with the request. */
  onRequest?: () => void;
}

/** Runs a step of the real harness, with the provider's own package, and a provider that answers with these bytes. */
export async function stepOf(sent: Sent): Promise<Made> {
  const { provider, pieces, ends = true, comment, logger, model = 'm-1', onRequest } = sent;
  let closed = false;
  let timer: NodeJS.Timeout | undefined;
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const piece of pieces) controller.enqueue(piece);
      if (ends) controller.close();
      if (comment !== undefined) timer = setInterval(() => controller.enqueue(Buffer.from(comment)), 700);
    },
    cancel: () => {
      closed = true;
      clearInterval(timer);
    },
  });
  const harness = modelHarness({
    fetch: async () => {
      onRequest?.();
      return new Response(body, { headers: { 'content-type': 'text/event-stream' } });
    },
    tools: () => Promise.resolve([]),
    allowances: allowing(env),
    ...(logger === undefined ? {} : { logger }),
  });
  const events: StepEvent[] = [];
  let code: string | undefined;
  try {
    for await (const event of harness.step(contextWith(manifestWith({ provider, apiKey, name: model }))))
      events.push(event);
  } catch (error) {
    if (!(error instanceof HarnessError)) throw error;
    code = error.code;
  } finally {
    clearInterval(timer);
  }
  return { ...madeOf(events), ...(code === undefined ? {} : { code }), closed };
}

function madeOf(events: readonly StepEvent[]): Omit<Made, 'closed'> {
  const made: Omit<Made, 'closed'> = {};
  for (const event of events) {
    if (event.type === 'text') made.text = (made.text ?? '') + event.text;
    if (event.type === 'thinking') made.thinking = (made.thinking ?? '') + event.text;
    if (event.type === 'usage') {
      const { inputTokens, outputTokens, cachedInputTokens } = event;
      made.usage = [
        inputTokens,
        outputTokens,
        ...(cachedInputTokens === undefined ? [] : [cachedInputTokens]),
      ] as never;
    }
    if (event.type === 'message' && event.toolCalls.length > 0)
      made.calls = event.toolCalls.map(({ toolName, toolInput, invalidInput }) => [
        toolName,
        invalidInput ?? toolInput,
      ]);
  }
  return made;
}

/** Returns server-sent events: objects as JSON, and texts unchanged. */
export function frames(...events: readonly (object | string | null)[]): Uint8Array {
  const texts = events.map((event) => (typeof event === 'string' ? event : `data: ${JSON.stringify(event)}`));
  return Buffer.from(texts.map((text) => `${text}\n\n`).join(''));
}

type Frames = (object | string | null)[];
/** By kind of oddity: a title, the frames that are sent, and the result of the step. */
export type Odd = Record<string, [what: string, sent: Frames, made: Partial<Made>][]>;

export const oddRows = (odd: Odd) =>
  Object.entries(odd).flatMap(([kind, all]) => all.map((row) => [`${kind}: ${row[0]}`, row[1], row[2]] as const));
