import { setTimeout as pause } from 'node:timers/promises';
import { z } from 'zod';
import {
  HarnessError,
  type Harness,
  type RequestedTool,
  type StepContext,
  type StepEvent,
  type TranscriptMessage,
} from '../harness.ts';
import { manifestIssues } from '../manifest-issues.ts';
import { countWords, deltasOf, wordsIn } from '../words.ts';
import { GUIDE_TOOLS } from './guide-tools.ts';
import { TOPICS } from './guide-topics.ts';

const settingsSchema = z.strictObject({
  name: z.literal('guide'),
  /** The pause between two deltas, milliseconds. */
  pauseMs: z.number().int().min(0).max(1_000).default(0),
});

/** What one step says and asks for. */
interface Step {
  thinking?: string;
  text: string;
  toolCalls?: RequestedTool[];
}

type ToolMessage = Extract<TranscriptMessage, { role: 'tool' }>;

interface Turn {
  context: StepContext;
  /** The message of the user, in lower case. */
  message: string;
  /** The results of the tools that were called since that message, also by Runs that a retry continues. */
  results: readonly ToolMessage[];
}

/**
 * A harness with a script instead of a model, for people who try Spool: a conversation about Spool with thinking, tools, an approval, a
 * file, an error and a retry. Everything that it does follows from the transcript, so an interrupted step is repeated exactly.
 */
export function guideHarness(): Harness {
  return {
    name: 'guide',
    checkSettings: ({ harness }) =>
      manifestIssues(settingsSchema, harness).map((issue) => ({ ...issue, path: ['harness', ...issue.path] })),
    readiness: () => Promise.resolve([]),
    tools: () => Promise.resolve(GUIDE_TOOLS),
    step: guideStep,
  };
}

async function* guideStep(context: StepContext): AsyncGenerator<StepEvent> {
  const { pauseMs } = settingsSchema.parse(context.manifest.harness);
  const { thinking = '', text, toolCalls = [] } = await nextStep(context);
  for (const [type, whole] of [
    ['thinking', thinking],
    ['text', text],
  ] as const) {
    for (const delta of deltasOf(whole)) {
      yield { type, text: delta };
      if (pauseMs > 0) await pause(pauseMs, undefined, { signal: context.signal });
      context.signal.throwIfAborted();
    }
  }
  yield { type: 'usage', inputTokens: await wordsIn(context.transcript), outputTokens: countWords(thinking + text) };
  yield { type: 'message', text, toolCalls };
}

async function nextStep(context: StepContext): Promise<Step> {
  const { transcript } = context;
  const asked = transcript.findLastIndex(({ role }) => role === 'user');
  const user = transcript[asked];
  const { text = '', fileIds = [] } = user?.role === 'user' ? user : {};
  const results = transcript.slice(asked + 1).filter((entry) => entry.role === 'tool');
  const turn = { context, message: text.toLowerCase(), results };
  if (fileIds.length > 0) return describeFiles(context, fileIds);
  return (SCENES.find(({ pattern }) => pattern.test(turn.message))?.play ?? explain)(turn);
}

/** In the order in which they are tried, before the topics. */
const SCENES: readonly { pattern: RegExp; play: (turn: Turn) => Step }[] = [
  { pattern: /\b(error|fail)/, play: fail },
  { pattern: /\b(tour|show me|demo|summary)\b/, play: tour },
  { pattern: /\b(long|stop|everything)\b/, play: tellAll },
];

const PAGE = 'spool-on-one-page.md';
const lookUp = (topic: string): RequestedTool => ({ toolName: 'look_up', toolInput: { topic } });

function tour({ results }: Turn): Step {
  const pages = results.filter(({ toolName }) => toolName === 'look_up').map(({ result }) => result);
  const written = results.find(({ toolName }) => toolName === 'write_page');
  if (pages.length === 0) {
    return {
      thinking: 'A tour should show what a Run can do. I read two topics first, and then ask before I write a file.',
      text: 'I look up two topics.',
      toolCalls: [lookUp('threads'), lookUp('crashes')],
    };
  }
  if (written === undefined) {
    return {
      text: `I have read both. May I write them to a file? The tool has the policy \`ask\`, so this Run waits for you.`,
      toolCalls: [{ toolName: 'write_page', toolInput: { name: PAGE, text: `# Spool\n\n${pages.join('\n\n')}\n` } }],
    };
  }
  const ending = 'Now ask me for an *error*, or for a *long* answer that you can stop.';
  if (written.outcome === 'ok') return { text: `Done: the file \`${PAGE}\` belongs to this Thread now. ${ending}` };
  if (written.outcome === 'refused') return { text: `You rejected the call, so nothing was written. ${ending}` };
  return { text: `The file could not be written: ${written.result} ${ending}` };
}

/** Fails after a stored tool call. A retry finds the result of the other Run, and goes on from there. */
function fail({ context, results }: Turn): Step {
  const checked = results.find(({ toolName }) => toolName === 'check_service');
  if (checked === undefined) {
    return {
      thinking: 'The user wants to see an error. I call a tool first, so that there is something to keep.',
      text: 'I call a tool, and then the scripted provider fails. Spool repeats the step for some seconds before the Run fails.',
      toolCalls: [{ toolName: 'check_service', toolInput: {} }],
    };
  }
  if (checked.result.includes(context.runId)) throw new HarnessError('provider_unavailable');
  return {
    text: 'The retry worked. It continued after the tool call of the failed Run, so the tool was not called again.',
  };
}

function tellAll(): Step {
  const parts = TOPICS.map(({ title, text }) => `## ${title}\n\n${text}`);
  return { text: `This is everything that I know. You can stop me at any time.\n\n${parts.join('\n\n')}` };
}

function explain({ message, results }: Turn): Step {
  const topic = TOPICS.find(({ pattern }) => pattern.test(message));
  if (topic === undefined) return introduce(message);
  const found = results.find(({ toolName }) => toolName === 'look_up');
  if (found !== undefined) return { text: `## ${topic.title}\n\n${found.result}` };
  const thinking = `The question is about ${topic.title.toLowerCase()}. I look it up.`;
  return { thinking, text: '', toolCalls: [lookUp(topic.name)] };
}

function introduce(message: string): Step {
  const isGreeting = /^\W*(hi|hello|hey|help|good (morning|day|evening))\b/.test(message) || message.trim() === '';
  const opening = isGreeting
    ? 'Hello! I am the guide: a **script**, not a model. I know Spool, and nothing else.'
    : 'I am a script, not a model, and have no answer to this. I cannot write code, search the web or remember other chats.';
  const topics = TOPICS.map(({ title }) => `- ${title}`).join('\n');
  return {
    text: `${opening}

Ask me about:

${topics}

Or type **show me** for a tour with tools and an approval, **error** for a failure that you can retry, or **long** for an answer that you can stop.`,
  };
}

async function describeFiles({ files }: StepContext, fileIds: readonly string[]): Promise<Step> {
  const attached = (await files.list()).filter(({ fileId }) => fileIds.includes(fileId));
  const rows = attached.map(({ path, mimeType, size }) => `| \`${path}\` | ${mimeType ?? 'unknown'} | ${size} |`);
  return {
    text: `I got your files. A real model could read them with its file tools; I am a script, and only see this:

| path | type | bytes |
|---|---|---|
${rows.join('\n')}`,
  };
}
