import { costOf, type AgentManifest, type Prices, type ToolPolicy } from '#agents';
import type { RunErrorCode, TokenUsage, ToolCall, ToolCompleted } from '#domain';
import type { EarlierUsage } from '#event-store';
import type { TranscriptEvent } from './transcript.ts';

/** The next action of a Run. */
export type NextAction =
  /** `tokensLeft`: the most tokens that the step may use; omitted if the Run's tokens are not limited. */
  | { kind: 'model_step'; tokensLeft?: number }
  /** The calls run at the same time. */
  | { kind: 'run_tools'; calls: CallToRun[] }
  /** The call ends without being run. `detail`: further text for the model. */
  | { kind: 'settle_tool'; call: ToolCall; as: Settlement; detail?: string }
  | { kind: 'ask'; calls: ToolCall[] }
  | { kind: 'complete'; text: string }
  | { kind: 'give_up'; code: RunErrorCode };

export interface CallToRun {
  call: ToolCall;
  /** Whether its start is already stored, by a lost attempt or by the Run that this one retries. */
  started: boolean;
}

export type Settlement = 'lost' | 'rejected' | 'denied' | 'missing' | 'invalid';

/** The most calls that run at the same time. */
const MAX_TOGETHER = 8;

/** The outcome of a call that is not run, and the text for the model and the log. */
export const SETTLEMENTS: Record<Settlement, { outcome: ToolCompleted['outcome']; text: string }> = {
  lost: {
    outcome: 'unknown',
    text: 'The outcome is unknown: the call was cut off. It may have taken effect and was not repeated.',
  },
  rejected: { outcome: 'refused', text: 'The call was refused by the person who was asked.' },
  denied: { outcome: 'refused', text: 'The agent’s policy does not allow this tool.' },
  missing: { outcome: 'error', text: 'There is no tool of this name.' },
  invalid: { outcome: 'error', text: 'The tool was not run.' },
};

export interface Rules {
  runId: string;
  /** The rules by tool name; undefined for a tool that does not exist. */
  tools: ReadonlyMap<string, ToolRules>;
  /** Returns the problem of a call's input; null if the tool may be run with it. */
  inputProblem: (call: ToolCall) => string | null;
  /** Limits of the whole Run: model steps, tokens, and their cost. */
  limits: Pick<AgentManifest['limits'], 'maxSteps' | 'maxTokens' | 'maxCost'>;
  /** Returns the prices of a model: the Agent's first one, or a fallback model by its place. */
  pricesOf: (fallback?: number) => Prices;
  /** The Run's steps that are not in the transcript, and their tokens, one entry for each model. */
  earlier: readonly EarlierUsage[];
}

export interface ToolRules {
  policy: ToolPolicy;
  idempotent: boolean;
  readOnly: boolean;
}

/**
 * Returns the next action of a Run. It depends only on stored events, so it is the same after a crash and for a retry.
 * 1. Calls that need no permission run, in their order.
 * 2. Permission for all other calls is requested together.
 * 3. The allowed calls run (docs/spec/decisions.md#waiting).
 * Consecutive calls that only read run at the same time. So a call sees the changes of earlier calls, and no two calls change
 * things at the same time.
 */
export function nextAction(transcript: readonly TranscriptEvent[], rules: Rules): NextAction {
  const last = transcript.findLastIndex(({ type }) => type === 'message.added' || type === 'assistant.message_added');
  const message = transcript[last];
  if (message?.type !== 'assistant.message_added') return modelStep(transcript, rules);
  const { text, toolCalls } = message.data;
  if (toolCalls.length === 0) return { kind: 'complete', text };
  const stored = storedOf(transcript.slice(last + 1));
  const open = toolCalls.filter(({ toolCallId }) => !stored.completed.has(toolCallId));
  if (open.length === 0) return modelStep(transcript, rules);
  const together: CallToRun[] = [];
  for (const call of open) {
    const action = withoutAsking(call, stored, rules);
    if (action === null) continue;
    const onlyReads = 'started' in action && rules.tools.get(call.toolName)?.readOnly === true;
    if (together.length > 0 && !onlyReads) break;
    if (!('started' in action)) return action;
    together.push(action);
    if (!onlyReads || together.length === MAX_TOGETHER) break;
  }
  return together.length > 0 ? { kind: 'run_tools', calls: together } : { kind: 'ask', calls: open };
}

/** Returns the calls whose input a later `nextAction` may need. */
export function callsToCheck(transcript: readonly TranscriptEvent[]): ToolCall[] {
  const last = transcript.findLastIndex(({ type }) => type === 'message.added' || type === 'assistant.message_added');
  const message = transcript[last];
  if (message?.type !== 'assistant.message_added') return [];
  const { started, completed } = storedOf(transcript.slice(last + 1));
  return message.data.toolCalls.filter(({ toolCallId: id }) => !started.has(id) && !completed.has(id));
}

/** Computes the usage from the Run's own messages, and from those that are not in the transcript. */
function modelStep(transcript: readonly TranscriptEvent[], { runId, limits, pricesOf, earlier }: Rules): NextAction {
  const { maxSteps, maxTokens = Infinity, maxCost = Infinity } = limits;
  let [steps, tokens, cost] = [0, 0, 0];
  const add = (usage: TokenUsage, fallback: number | undefined, ofSteps: number): void => {
    steps += ofSteps;
    tokens += usage.inputTokens + usage.outputTokens;
    cost += costOf(usage, pricesOf(fallback));
  };
  for (const used of earlier) add(used, used.fallback, used.steps);
  for (const event of transcript) {
    if (event.type !== 'assistant.message_added' || event.runId !== runId) continue;
    const { usage = NO_USAGE, model } = event.data;
    add(usage, model?.fallback, 1);
  }
  if (steps >= maxSteps) return { kind: 'give_up', code: 'step_limit_reached' };
  if (tokens >= maxTokens) return { kind: 'give_up', code: 'token_limit_reached' };
  if (cost >= maxCost) return { kind: 'give_up', code: 'cost_limit_reached' };
  return { kind: 'model_step', ...(maxTokens === Infinity ? {} : { tokensLeft: maxTokens - tokens }) };
}

/** For a transcript that has all steps of the Run. */
export const NOTHING_EARLIER: readonly EarlierUsage[] = [];

const NO_USAGE: TokenUsage = { inputTokens: 0, outputTokens: 0 };

type Stored = ReturnType<typeof storedOf>;

function storedOf(events: readonly TranscriptEvent[]) {
  const started = new Set<string>();
  const completed = new Set<string>();
  const decided = new Map<string, 'allow_once' | 'reject_once'>();
  for (const { type, data } of events) {
    if (type === 'tool.started') started.add(data.toolCallId);
    if (type === 'tool.completed') completed.add(data.toolCallId);
    if (type === 'tool.confirmation_decided') decided.set(data.toolCallId, data.decision);
  }
  return { started, completed, decided };
}

type Settled = Extract<NextAction, { kind: 'settle_tool' }>;

/** Returns the action for an open call, null if a person has to be asked first. */
function withoutAsking(
  call: ToolCall,
  { started, decided }: Stored,
  { tools, inputProblem }: Rules,
): CallToRun | Settled | null {
  const settle = (as: Settlement): Settled => ({ kind: 'settle_tool', call, as });
  const tool = tools.get(call.toolName);
  if (started.has(call.toolCallId)) return tool?.idempotent ? { call, started: true } : settle('lost');
  if (tool === undefined) return settle('missing');
  if (tool.policy === 'deny') return settle('denied');
  const detail = inputProblem(call);
  if (detail !== null) return { ...settle('invalid'), detail };
  const decision = decided.get(call.toolCallId);
  if (decision === 'reject_once') return settle('rejected');
  if (tool.policy === 'ask' && decision === undefined) return null;
  return { call, started: false };
}
