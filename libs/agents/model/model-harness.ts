import type { LanguageModelV3FunctionTool, LanguageModelV3Prompt, LanguageModelV3StreamPart } from '@ai-sdk/provider';
import { ownTurn, pauseIfLong } from '#platform';
import { NOTHING_ALLOWED, type Allowances } from '../allowances.ts';
import type { Harness, RunContext, StepContext, StepEvent, Tool, TranscriptMessage } from '../harness.ts';
import { Answer } from './answer.ts';
import { fitContext } from './context-window.ts';
import { readContinuation, toContinuation } from './continuation.ts';
import { withBoundedHeld } from './held-units.ts';
import { LargeParts } from './large-parts.ts';
import { LearnedQuirks } from './learned-quirks.ts';
import { correction, messageTokens, sum, textTokens, toolTokens } from './estimate.ts';
import {
  answerLimit,
  answerTokens,
  candidatesOf,
  modelIssues,
  takesImages,
  windowTokens,
  type ModelChoice,
} from './model-settings.ts';
import { oddityReport, type OddityLog, type OnOddity } from './oddities.ts';
import { toFunctionTools, toPrompt } from './prompt.ts';
import { providerError } from './provider-errors.ts';
import type { Fetch } from './providers.ts';
import { returnedReasoning } from './reasoning.ts';
import type { Quirks } from './server-profiles.ts';
import { imageBytes, readImages, shownImages, describeFiles } from './shown-files.ts';
import { watchedStream } from './watched-stream.ts';
import { countProviderCall } from './metrics.ts';

export interface ModelHarnessOptions {
  /** Calls providers. Throws an error named `AddressRefused` for an address that is not allowed. */
  fetch: Fetch;
  /** Returns the tools of a Run. Throws HarnessError (`tool_server_unavailable`). */
  tools: (context: RunContext) => Promise<readonly Tool[]>;
  /** Releases the connections of the tools. */
  close?: () => Promise<void>;
  /** Which variables and files may hold keys. Default: none. */
  allowances?: Allowances;
  /** Counts and logs how answers differ from their protocol. Default: nobody does. */
  logger?: OddityLog;
  /** Called for each oddity. Default: nobody is told. */
  onOddity?: OnOddity;
  /** Returns milliseconds since 1970. Dates in `Retry-After` are compared with it. */
  now?: () => number;
}

/**
 * Runs agents with a language model. Each step is one call of the provider, and the transcript has all that a step needs. The
 * process also remembers what servers refused, so that it does not send it again.
 */
export function modelHarness({
  fetch,
  tools,
  close = () => Promise.resolve(),
  allowances = NOTHING_ALLOWED,
  logger,
  onOddity = () => undefined,
  now = Date.now,
}: ModelHarnessOptions): Harness {
  const learned = new LearnedQuirks();
  return {
    name: 'model',
    checkSettings: modelIssues,
    models: candidatesOf,
    // Keys are checked together with all other secrets (readiness.ts).
    readiness: () => Promise.resolve([]),
    tools,
    step: (context) => modelStep(context, { fetch, allowances, logger, onOddity, now, learned }),
    close,
  };
}

type StepParts = Required<Pick<ModelHarnessOptions, 'fetch' | 'allowances' | 'onOddity' | 'now'>> & {
  logger: OddityLog | undefined;
  learned: LearnedQuirks;
};

async function* modelStep(context: StepContext, options: StepParts): AsyncGenerator<StepEvent> {
  const { signal, tokensLeft } = context;
  const { model } = context.manifest;
  if (model === undefined) throw new Error('The agent has no model.');
  signal.throwIfAborted();
  const { parts, headers, apiKey, estimatedTokens } = await prepareCall(model, context, options);
  const answer = new Answer({ maxTokens: tokensLeft, modelLimit: answerLimit(model), estimatedTokens });
  const [counted, calledAt] = [countProviderCall(model.provider), performance.now()];
  try {
    for await (const part of parts) {
      const event = answer.add(part);
      if (event !== null) yield event;
      // Thousands of parts may have arrived at once.
      await pauseIfLong();
    }
    const usage = answer.usage(answer.finish().usage);
    counted('ok');
    yield { type: 'usage', ...usage };
  } catch (error) {
    signal.throwIfAborted();
    const waitedMs = performance.now() - calledAt;
    const failure = providerError(error, { apiKey, now: options.now(), waitedMs, model, headers: headers() });
    counted(failure.code);
    throw failure;
  } finally {
    counted('stopped');
  }
  const { text, toolCalls, blocks, reasoning } = answer;
  const continuation = toContinuation(model, { estimatedTokens, blocks, reasoning });
  yield { type: 'message', text, toolCalls, continuation };
}

interface Call {
  /** Calls the provider when it is read. */
  parts: AsyncIterable<LanguageModelV3StreamPart>;
  /** Returns the headers of the response, or {} before it arrived. Errors in a stream have no headers themselves. */
  headers: () => Record<string, string>;
  apiKey: string | null;
  estimatedTokens: number;
}

/** Throws HarnessError (`provider_auth`, `context_too_long`, `storage_unavailable`) and NoRoom. */
async function prepareCall(
  model: ModelChoice,
  context: StepContext,
  { fetch, allowances, logger, onOddity, learned }: StepParts,
): Promise<Call> {
  // Imported late: the providers' packages take 130 ms of CPU to load, and most processes never call a provider.
  const { callSettings, languageModel, resolveKey } = await import('./providers.ts');
  const apiKey = await resolveKey(model, allowances);
  const server = learned.serverOf(context.agentId, model);
  const { prompt, estimatedTokens } = await preparePrompt(model, context, server.quirks);
  const report = oddityReport(context, logger);
  const large = new LargeParts();
  const answering = languageModel(model, {
    apiKey,
    fetch: large.writing(fetch),
    onOddity: (kind, place) => {
      report(kind, place);
      onOddity(kind, place);
    },
    server,
  });
  const options = {
    prompt: await large.take(prompt),
    tools: await toolsInOwnTurn(context.tools),
    ...callSettings(model, mayThink(model, context), context.tokensLeft),
    includeRawChunks: true,
  };
  let headers: Record<string, string> = {};
  const parts = watchedStream<LanguageModelV3StreamPart>({
    open: async (abortSignal) => {
      const { stream, response } = await answering.doStream({ ...options, abortSignal });
      headers = response?.headers ?? {};
      return withBoundedHeld(stream, model.provider);
    },
    signal: context.signal,
    silenceMs: model.silenceMs,
  });
  return { parts, headers: () => headers, apiKey, estimatedTokens };
}

/** Converts the tools in a turn of its own. The provider's package then writes the request in another turn. */
async function toolsInOwnTurn(tools: readonly Tool[]): Promise<LanguageModelV3FunctionTool[]> {
  await ownTurn();
  const converted = toFunctionTools(tools);
  await ownTurn();
  return converted;
}

interface Prepared {
  prompt: LanguageModelV3Prompt;
  estimatedTokens: number;
}

/** Throws HarnessError (`context_too_long`, `storage_unavailable`) and NoRoom. */
async function preparePrompt(model: ModelChoice, context: StepContext, quirks: Quirks): Promise<Prepared> {
  const { manifest, signal, tools } = context;
  const files = new Map((await context.files.list()).map((file) => [file.fileId, file]));
  const told = describeFiles(context.transcript, files);
  const shown = takesImages(model) ? shownImages(told, files, model.provider) : new Set<string>();
  const reasoning = returnedReasoning(model, quirks.reasoning, told);
  const countedFor = { model, isShown: (fileId: string) => shown.has(fileId), reasoning };
  const tokensOf = (message: TranscriptMessage): number => messageTokens(message, countedFor);
  const fixed = textTokens(manifest.instructions) + sum(tools.map(toolTokens));
  // Counts each message once, in steps, because a transcript may have megabytes. The code below only adds the counts.
  for (const message of told) {
    tokensOf(message);
    await pauseIfLong();
  }
  const room = Math.floor((windowTokens(model) - answerTokens(model)) / correction(model, told));
  const transcript = fitContext(told, { budget: room - fixed, tokensOf });
  context.makeRoom(imageBytes(shown, files));
  const images = await readImages(transcript, shown, { files, read: (file) => context.files.read(file), signal });
  const prompt = toPrompt({ model, instructions: manifest.instructions, transcript, images, quirks });
  return { prompt, estimatedTokens: fixed + sum(transcript.map(tokensOf)) };
}

/**
 * Returns whether the model may think in this step. Anthropic refuses thinking in a turn that began without it, or whose thinking
 * cannot be sent back, as after a change of the model between a Run and the Run that resumes it.
 */
function mayThink(model: ModelChoice, { transcript }: StepContext): boolean {
  const beginsTurn = (message: TranscriptMessage): boolean =>
    message.role === 'user' || (message.role === 'assistant' && message.stopped === true);
  const turn = transcript.slice(transcript.findLastIndex(beginsTurn) + 1);
  const answers = turn.filter((message) => message.role === 'assistant');
  const thoughts = answers.flatMap(({ continuation }) => readContinuation(model, continuation)?.blocks ?? []);
  return answers.length === 0 || thoughts.some(({ type }) => type === 'thinking' || type === 'redacted');
}
