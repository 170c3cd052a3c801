import { HarnessError, type Harness, type StepContext, type StepEvent, type Tool } from '#agents';
import type { Faults } from './faults.ts';
import type { Scheduler } from './scheduler.ts';

/** Hears of everything that a harness does in the world. */
export interface World {
  /** How many times as long the steps of an agent take. */
  slowness: (agentId: string) => number;
  /** A model step begins, with what it is given of its Thread. */
  onStep: (step: GivenStep) => void;
  /** A tool takes effect; it cannot be taken back. */
  onEffect: (effect: Effect) => void;
}

export type GivenStep = Pick<StepContext, 'threadId' | 'runId' | 'attempt' | 'transcript'>;

export interface Effect {
  threadId: string;
  runId: string;
  toolCallId: string;
  toolName: string;
}

const MAX_STEPS = 3;
/** Of steps, which fail one by one and not with the faults: also where nothing goes wrong. */
const FAILURES = [
  new HarnessError('provider_unavailable'),
  new HarnessError('provider_rate_limited', { retryAfterMs: 1_500 }),
  new HarnessError('provider_auth'),
  new Error('The harness has a bug.'),
];

export const ASKED = ['pay', 'send'];
export const IDEMPOTENT = ['look', 'send'];
const READING = ['look'];
const TOOLS = ['look', 'write', 'pay', 'send'];
const ANY_INPUT = { type: 'object' };
/** What a step asks for: mostly what needs no person. */
const WANTED = ['look', 'write', 'look', 'write', ...TOOLS];

/** A harness that does all that one can do, as the seed has it: text, tools, questions, failures, deafness. */
export function simulatedHarness(scheduler: Scheduler, faults: Faults, world: World): Harness {
  const { random } = scheduler;
  const oneIn = (count: number): boolean => random.below(count) === 0;
  const sleep = (ms: number, signal: AbortSignal): Promise<void> => {
    const { current } = scheduler;
    const deaf = oneIn(10);
    return new Promise((resolve, reject) => {
      const abort = (): void => {
        task.dropped = true;
        reject(signal.reason as Error);
      };
      const task = scheduler.after(ms, current, () => {
        signal.removeEventListener('abort', abort);
        resolve();
      });
      if (!deaf) signal.addEventListener('abort', abort);
    });
  };
  const pauseMs = (): number => (oneIn(30) ? faults.between(500, 4_000) : faults.between(1, 60));
  async function* step(context: StepContext): AsyncGenerator<StepEvent> {
    const { agentId, transcript, signal } = context;
    world.onStep(context);
    const steps = transcript.filter(({ role }) => role === 'assistant').length;
    let text = '';
    for (let pieces = random.below(4); pieces > 0; pieces--) {
      await sleep(world.slowness(agentId) * pauseMs(), signal);
      const piece = `piece ${pieces} `;
      text += piece;
      yield { type: 'text', text: piece };
    }
    if (oneIn(12)) throw random.pick(FAILURES);
    if (oneIn(2)) yield { type: 'usage', inputTokens: 10, outputTokens: 5 };
    const callCount = steps % (MAX_STEPS + 1) >= MAX_STEPS ? 0 : random.below(4);
    const toolCalls = Array.from({ length: callCount }, () => ({ toolName: random.pick(WANTED), toolInput: {} }));
    yield { type: 'message', text, toolCalls };
  }
  const tool = (name: string): Tool => ({
    name,
    title: name,
    description: name,
    inputSchema: ANY_INPUT,
    policy: ASKED.includes(name) ? 'ask' : 'allow',
    idempotent: IDEMPOTENT.includes(name),
    readOnly: READING.includes(name),
    execute: async (_input, { agentId, threadId, runId, toolCallId, signal }) => {
      if (oneIn(2)) await sleep(pauseMs(), signal);
      world.onEffect({ threadId, runId, toolCallId, toolName: name });
      await sleep(world.slowness(agentId) * pauseMs(), signal);
      if (oneIn(20)) throw new Error('The tool has a bug.');
      return { text: 'done', isError: oneIn(10) };
    },
  });
  const tools = TOOLS.map(tool);
  return { name: 'simulated', checkSettings: () => [], readiness: async () => [], tools: async () => tools, step };
}
