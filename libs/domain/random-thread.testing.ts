import fc from 'fast-check';
import type { Command, RecordedFact } from './commands.ts';
import { command } from './decider.testing.ts';
import type { RunErrorCode } from './run-errors.ts';
import { runError } from './run-errors.ts';
import type { LiveRun, ThreadState } from './state.ts';

/**
 * One random command to a Thread. Its numbers are relative to the state, so that most commands are nearly valid, and stay so
 * when they shrink.
 */
export interface Intent {
  kind: (typeof KINDS)[number];
  /** The index of the Run: first the live ones, from the current one on, then the ended ones, then one that never existed. */
  run: number;
  /** The difference from the valid attempt or dispatch. */
  off: number;
  /** The variant. */
  pick: number;
}

/** One batch of commands, and the time since the batch before, milliseconds. */
export interface Step {
  afterMs: number;
  batch: Intent[];
}

const KINDS = [
  'advance',
  'add_message',
  'decide_permission',
  'interrupt',
  'retry_run',
  'archive',
  'unarchive',
  'set_title',
  'file',
  'claim_run',
  'start_run',
  'record',
  'wait_for_decisions',
  'complete_run',
  'fail_run',
  'hand_over_run',
  'reclaim_run',
  'expire_run',
  'terminate_thread',
  'create_thread',
] as const;

const RARE: readonly Intent['kind'][] = ['archive', 'terminate_thread', 'create_thread'];
const kind = fc.oneof(
  { arbitrary: fc.constant('advance' as const), weight: 60 },
  { arbitrary: fc.constant('add_message' as const), weight: 15 },
  ...KINDS.map((name) => ({ arbitrary: fc.constant(name), weight: RARE.includes(name) ? 1 : 5 })),
);
const mostly = (usual: number, other: fc.Arbitrary<number>) =>
  fc.oneof({ arbitrary: fc.constant(usual), weight: 5 }, other);

const intent: fc.Arbitrary<Intent> = fc.record({
  kind,
  run: mostly(0, fc.nat(5)),
  off: mostly(0, fc.constantFrom(-1, 1)),
  pick: fc.nat(11),
});

export const anySteps: fc.Arbitrary<Step[]> = fc.array(
  fc.record({
    afterMs: fc.oneof(fc.constant(0), fc.nat(100_000)),
    batch: fc.oneof(
      { arbitrary: intent.map((one) => [one]), weight: 4 },
      fc.array(intent, { minLength: 2, maxLength: 3 }),
    ),
  }),
  { maxLength: 60, size: 'max' },
);

/** The ids that were used. The state does not have all of them. */
export interface Names {
  runs: string[];
  requests: string[];
}

const ERRORS: RunErrorCode[] = ['provider_unavailable', 'worker_lost', 'internal', 'provider_auth'];
const WHEN_BUSY = ['enqueue', 'interrupt', 'reject'] as const;
const REFERENCES = [{}, { clientExternalRef: 'mine' }, { externalRef: { value: 'mine', tokenId: 'token' } }];
const LIMITS_OF_TIME = ['queue', 'work', 'wait'] as const;

/** Returns the intent as a command to a Thread in this state. Adds the ids that it uses to `names`. */
export function toCommand({ kind, run: nth, off, pick }: Intent, state: ThreadState, names: Names): Command {
  const live = state.lifecycle === 'none' ? [] : state.runs;
  const known = [...live.map(({ id }) => id), ...names.runs.toReversed(), 'never'];
  const runId = known[Math.min(nth, known.length - 1)] ?? 'never';
  const run = live.find(({ id }) => id === runId);
  const attempt = (run?.attempt ?? 1) + off;
  const dispatch = (run?.dispatch ?? 1) + off;
  switch (kind) {
    case 'advance':
      return goOn(run, { pick, off }, names) ?? { type: 'archive' };
    case 'create_thread':
      return command.create(REFERENCES[pick % 3]);
    case 'add_message':
      return command.message(newId(names.runs, 'R'), WHEN_BUSY[pick % 3]);
    case 'decide_permission':
      return command.decide(requestOf(run, pick, names), pick % 2 ? 'allow_once' : 'reject_once');
    case 'interrupt':
      return command.interrupt(pick % 2 ? runId : null);
    case 'retry_run': {
      const newest = state.lifecycle === 'none' ? undefined : state.newestRun?.id;
      return command.retry(off === 0 ? (newest ?? runId) : runId, newId(names.runs, 'R'));
    }
    case 'archive':
    case 'unarchive':
      return { type: kind };
    case 'set_title':
      return command.setTitle(pick % 3 ? `title ${pick}` : null);
    case 'file':
      return {
        type: (['attach_file', 'detach_file', 'delete_file'] as const)[pick % 3] ?? 'delete_file',
        fileId: 'no such file',
      };
    case 'claim_run':
      return command.claim(runId, dispatch);
    case 'start_run':
      return command.start(runId, attempt);
    case 'record':
      return { type: 'record', runId, attempt, facts: factsOf(pick) };
    case 'wait_for_decisions':
      return command.wait(
        runId,
        Array.from({ length: pick % 4 }, () => newId(names.requests, 'Q')),
        attempt,
      );
    case 'complete_run':
      return command.complete(runId, attempt);
    case 'fail_run':
      return command.fail(runId, runError(ERRORS[pick % 4] ?? 'internal'), attempt);
    case 'hand_over_run':
      return command.handOver(runId, attempt);
    case 'reclaim_run':
      return command.reclaim(runId, attempt);
    case 'expire_run':
      return command.expire(runId, LIMITS_OF_TIME[pick % 3] ?? 'work', { dispatch: run?.dispatch ?? 1, attempt });
    case 'terminate_thread':
      return command.terminate();
  }
}

/** Returns the next command of the normal course of the Run. */
function goOn(run: LiveRun | undefined, { pick, off }: Pick<Intent, 'pick' | 'off'>, names: Names): Command | null {
  if (run === undefined) return pick % 3 ? command.message(newId(names.runs, 'R')) : null;
  const { id, attempt, dispatch } = run;
  switch (run.status) {
    case 'queued':
      return command.claim(id, dispatch + off);
    case 'booting':
      return command.start(id, attempt + off);
    case 'running':
      if (pick < 4) return { type: 'record', runId: id, attempt, facts: factsOf(pick) };
      if (pick < 8)
        return command.wait(
          id,
          Array.from({ length: pick - 3 }, () => newId(names.requests, 'Q')),
          attempt,
        );
      return pick < 10 ? command.complete(id, attempt) : command.reclaim(id, attempt);
    case 'waiting_input':
      return command.decide(requestOf(run, pick, names));
  }
}

function requestOf(run: LiveRun | undefined, pick: number, { requests }: Names): string {
  const open = run?.status === 'waiting_input' ? run.requests.filter(({ decision }) => decision === null) : [];
  return open[pick % 3]?.requestId ?? open[0]?.requestId ?? requests[pick] ?? 'never asked';
}

const CALL = { toolCallId: 'T', toolName: 'look', title: 'Look', toolInput: {} };

function factsOf(pick: number): RecordedFact[] {
  const facts: RecordedFact[] = [
    { type: 'assistant.text_added', data: { text: 'x' } },
    { type: 'assistant.message_added', data: { text: 'x', toolCalls: [] } },
    { type: 'tool.completed', data: { ...CALL, outcome: 'ok', summary: '', result: '', durationMs: 1 } },
    { type: 'tool.started', data: CALL },
    { type: 'usage.recorded', data: { inputTokens: 1, outputTokens: 2 } },
  ];
  return pick % 6 === 0 ? [] : facts.slice(pick % 5);
}

function newId(used: string[], letter: string): string {
  const id = `${letter}${used.length + 1}`;
  used.push(id);
  return id;
}
