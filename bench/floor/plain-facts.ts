import type { PlainEvent, PlainRun, PlainStore } from './plain-store.ts';

const ANSWER = 'You said: Hello, how are you today?';
const DELTA = 'A piece of text of forty characters long.';
const USAGE = { inputTokens: 5, outputTokens: 7 };

/** Returns the facts of a new Thread with a message. */
export function factsOfCreation(text: string): PlainEvent[] {
  const limits = { queueMs: 600_000, workMs: 3_600_000, waitMs: 604_800_000, maxLosses: 3 };
  return [
    { type: 'thread.created', data: { kind: 'cattle', userId: 'bench' } },
    { type: 'message.added', data: { text, fileIds: [], requestId: null } },
    { type: 'run.queued', data: { limits, trigger: 'user_prompt', agentVersion: 1, delayMs: 0 } },
    { type: 'thread.status_entered', data: { status: 'RUNNING' } },
  ];
}

const STARTED: PlainEvent[] = [
  { type: 'run.claimed', data: { holder: 'worker', dispatch: 1 } },
  { type: 'run.started', data: { first: true } },
];

const ENDED: PlainEvent[] = [
  { type: 'assistant.text_added', data: { text: ANSWER } },
  { type: 'assistant.message_added', data: { text: ANSWER, usage: USAGE, toolCalls: [] } },
  { type: 'usage.recorded', data: USAGE },
  { type: 'run.completed', data: { durationMs: 5, finalOutput: { text: ANSWER, warnings: [] } } },
  { type: 'thread.status_entered', data: { status: 'IDLE' } },
];

/** The types of all events of one Run, in order. `round-trip` checks that Spool's echo Run stores the same types. */
export const FACTS_OF_A_RUN = [...factsOfCreation(''), ...STARTED, ...ENDED].map(({ type }) => type);

/** Three deltas of an answer, as `append` to a hot stream adds them. */
export const DELTAS: PlainEvent[] = Array.from({ length: 3 }, () => ({
  type: 'assistant.text_added',
  data: { text: DELTA },
}));

/** Starts the Run of a new Thread. */
export function startRun(store: PlainStore, threadId: string, runId: string): Promise<PlainRun> {
  return store.start(threadId, runId, factsOfCreation('').length, STARTED);
}

/** Stores the whole answer and completes the Run. */
export function endRun(store: PlainStore, run: PlainRun): Promise<void> {
  return store.complete(run, ENDED, { text: ANSWER, warnings: [] });
}
