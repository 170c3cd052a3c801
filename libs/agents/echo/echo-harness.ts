import { setTimeout as pause } from 'node:timers/promises';
import { z } from 'zod';
import { BOUNDS } from '#domain';
import { HarnessError, type Harness, type RequestedTool, type StepContext, type StepEvent } from '../harness.ts';
import type { TranscriptMessage } from '../harness.ts';
import { manifestIssues } from '../manifest-issues.ts';
import { countWords, deltasOf, wordsIn } from '../words.ts';
import { echoDurationMs, parseEchoMessage, type EchoRequest, type EchoWord } from './echo-commands.ts';
import { ECHO_TOOLS } from './echo-tools.ts';

const settingsSchema = z.strictObject({
  name: z.literal('echo'),
  /** Between two pieces of the answer, milliseconds. */
  pauseMs: z.number().int().min(0).max(60_000).default(0),
  /** Whether `/crash` is obeyed: whoever may talk to the agent can then kill its worker, with other agents' Runs on it. */
  allowCrash: z.boolean().default(false),
});

const MAX_PIECES = BOUNDS.answers.echoDeltas.value;
const MAX_CONFIRMATIONS = BOUNDS.answers.echoConfirmations.value;
const THINKING_PIECES = 5;
const CITATION = '\u{E200}cite\u{E202}echo-source-1\u{E201}';

export interface EchoHarnessOptions {
  /** How `/crash` ends the process. Default: SIGKILL, which no handler sees. */
  crash?: () => void;
}

/** A harness without a model: what it does follows from the message, the transcript and the attempt alone. */
export function echoHarness({ crash = () => process.kill(process.pid, 'SIGKILL') }: EchoHarnessOptions = {}): Harness {
  return {
    name: 'echo',
    checkSettings: ({ harness }) =>
      manifestIssues(settingsSchema, harness).map((issue) => ({ ...issue, path: ['harness', ...issue.path] })),
    readiness: () => Promise.resolve([]),
    tools: () => Promise.resolve(ECHO_TOOLS),
    step: (context) => echoStep(context, crash),
  };
}

async function* echoStep(context: StepContext, crash: () => void): AsyncGenerator<StepEvent> {
  const settings = settingsSchema.parse(context.manifest.harness);
  const { transcript, signal } = context;
  const asked = transcript.findLastIndex(({ role }) => role === 'user');
  const message = transcript[asked]?.role === 'user' ? transcript[asked].text : '';
  const results = transcript.slice(asked + 1).filter((entry) => entry.role === 'tool');
  const request = parseEchoMessage(message, settings.allowCrash ? [] : ['/crash']);
  const { commands } = request;
  const inputTokens = await wordsIn(transcript);

  // 1. The first step of a turn thinks, fails, or asks for tools; the step after the tools ran only tells of them.
  if (results.length === 0) {
    if (commands.has('/think')) yield* think(echoDurationMs(commands.get('/think'), 500), signal);
    failWhereAsked(commands, context.attempt);
    const toolCalls = requestedTools(request);
    if (toolCalls.length > 0) {
      yield { type: 'usage', inputTokens, outputTokens: 0 };
      yield { type: 'message', text: '', toolCalls };
      return;
    }
  }
  // 2. The answer, piece by piece.
  const pauseMs = echoDurationMs(commands.get('/pause'), settings.pauseMs);
  let text = '';
  for (const piece of answerPieces(request, results)) {
    if (text !== '' && pauseMs > 0) await pause(pauseMs, undefined, { signal });
    signal.throwIfAborted();
    text += piece;
    yield { type: 'text', text: piece };
  }
  const crashes = commands.get('/crash');
  if (crashes === 'always' || (crashes === null && context.attempt === 1)) crash();
  yield { type: 'usage', inputTokens, outputTokens: countWords(text) };
  yield { type: 'message', text, toolCalls: [] };
}

async function* think(durationMs: number, signal: AbortSignal): AsyncGenerator<StepEvent> {
  for (let i = 1; i <= THINKING_PIECES; i++) {
    yield { type: 'thinking', text: `Thought ${i} of ${THINKING_PIECES}. ` };
    await pause(durationMs / THINKING_PIECES, undefined, { signal });
  }
}

function failWhereAsked(commands: EchoRequest['commands'], attempt: number): void {
  if (commands.has('/fail')) throw new HarnessError('provider_rejected');
  const flaky = commands.has('/flaky') && attempt <= numberOf(commands, '/flaky', 1, Infinity);
  if (flaky || commands.has('/fail-retryable')) throw new HarnessError('provider_unavailable');
}

function requestedTools({ text, commands }: EchoRequest): RequestedTool[] {
  const tools: RequestedTool[] = [];
  if (commands.has('/tool')) tools.push({ toolName: 'clock', toolInput: {} });
  if (commands.has('/artifact')) tools.push({ toolName: 'write_file', toolInput: { name: 'echo.txt', text } });
  const notes = commands.has('/confirm') ? numberOf(commands, '/confirm', 1, MAX_CONFIRMATIONS) : 0;
  for (let number = 1; number <= notes; number++)
    tools.push({ toolName: 'send_note', toolInput: { number, note: text } });
  return tools;
}

type ToolMessage = Extract<TranscriptMessage, { role: 'tool' }>;

/** The answer in the pieces in which it is streamed: words with the white space behind them. */
function* answerPieces({ text, commands }: EchoRequest, results: ToolMessage[]): Generator<string> {
  const told = results.map(({ toolName, outcome, result }) => `\n${toolName} (${outcome}): ${result}`);
  yield* deltasOf(`You said: ${text}${told.join('')}`);
  const count = commands.has('/pieces') ? numberOf(commands, '/pieces', 10, MAX_PIECES) : 0;
  for (let i = 1; i <= count; i++) yield ` ${i}`;
  if (commands.has('/cite')) yield* ` ${CITATION}`.match(/.{1,4}/gu) ?? [];
}

function numberOf(commands: EchoRequest['commands'], word: EchoWord, fallback: number, max: number): number {
  return Math.min(max, Number(commands.get(word) ?? fallback));
}
