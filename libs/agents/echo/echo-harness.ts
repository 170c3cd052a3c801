import { setTimeout as pause } from 'node:timers/promises';
import { z } from 'zod';
import { pauseIfLong } from '#platform';
import { HarnessError, type Harness, type RequestedTool, type StepContext, type StepEvent } from '../harness.ts';
import type { TranscriptMessage } from '../harness.ts';
import { manifestIssues } from '../manifest-issues.ts';
import { echoDurationMs, parseEchoMessage, type EchoRequest, type EchoWord } from './echo-commands.ts';
import { ECHO_TOOLS } from './echo-tools.ts';

const settingsSchema = z.strictObject({
  name: z.literal('echo'),
  /** Between two pieces of the answer, milliseconds. */
  pauseMs: z.number().int().min(0).max(60_000).default(0),
  /** Whether `/crash` is obeyed: whoever may talk to the agent can then kill its worker, with other agents' Runs on it. */
  allowCrash: z.boolean().default(false),
});

const MAX_PIECES = 10_000;
const MAX_CONFIRMATIONS = 20;
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
  for (const [piece] of `You said: ${text}${told.join('')}`.matchAll(/\S+\s*|\s+/g)) yield piece;
  const count = commands.has('/pieces') ? numberOf(commands, '/pieces', 10, MAX_PIECES) : 0;
  for (let i = 1; i <= count; i++) yield ` ${i}`;
  if (commands.has('/cite')) yield* ` ${CITATION}`.match(/.{1,4}/gu) ?? [];
}

function numberOf(commands: EchoRequest['commands'], word: EchoWord, fallback: number, max: number): number {
  return Math.min(max, Number(commands.get(word) ?? fallback));
}

async function wordsIn(transcript: readonly TranscriptMessage[]): Promise<number> {
  let words = 0;
  for (const entry of transcript) {
    words += countWords(entry.role === 'tool' ? entry.result : entry.text);
    await pauseIfLong();
  }
  return words;
}

/** Without a list of the words: a transcript may have millions. */
export function countWords(text: string): number {
  let words = 0;
  let inWord = false;
  for (let i = 0; i < text.length; i++) {
    const isSpace = isSpaceCode(text.charCodeAt(i));
    if (inWord === isSpace) inWord = !isSpace;
    else continue;
    if (inWord) words += 1;
  }
  return words;
}

const RARE_SPACES = new Set([0x1680, 0x2028, 0x2029, 0x202f, 0x205f, 0x3000, 0xfeff]);
for (let code = 0x2000; code <= 0x200a; code++) RARE_SPACES.add(code);

/** As `\s` of a regular expression has it. */
function isSpaceCode(code: number): boolean {
  if (code <= 0x20) return code === 0x20 || (code >= 0x09 && code <= 0x0d);
  return code === 0xa0 || (code >= 0x1680 && RARE_SPACES.has(code));
}
