import { deepStrictEqual as same } from 'node:assert';
import fc from 'fast-check';
import type { Command } from './commands.ts';
import { LIMITS } from './decider.testing.ts';
import { decide, type Decision } from './decide.ts';
import { evolve } from './evolve.ts';
import { anySteps, toCommand, type Names, type Step } from './random-thread.testing.ts';
import { randomRuns } from './random.testing.ts';
import { isRejection, type Rejection } from './rejection.ts';
import { initialState, threadStatus, type LiveRun, type ThreadState } from './state.ts';
import { StreamOracle } from './stream-oracle.testing.ts';
import { workChanges, type WorkItem } from './work-item.ts';

const LEASE_MS = 10_000;
/** The most characters of the stored state with 60 live Runs. The state must not grow with the stream. */
const MAX_STATE_LENGTH = 30_000;

/** The accepted and rejected commands, and the events. They show that the test covers all of them. */
const seen = {
  accepted: new Set<string>(),
  rejected: new Set<string>(),
  codes: new Set<string>(),
  events: new Set<string>(),
};

/** A Thread under random commands, and everything that must agree with it. */
class RandomThread {
  private state: ThreadState = initialState;
  private now = 0;
  private readonly names: Names = { runs: [], requests: [] };
  private readonly oracle = new StreamOracle();
  private readonly rows = new Map<string, WorkItem>();

  take({ afterMs, batch }: Step): void {
    this.now += afterMs;
    const { commands, alone } = this.askOneByOne(batch);
    const before = this.state;
    const decision = this.decide(commands, before);
    const refused = alone.find(isRejection);
    if (isRejection(decision)) return same(decision, refused);
    same(refused, undefined);
    this.follow(before, decision);
    // The same commands give the same result one by one.
    same(
      alone.flatMap((one) => (isRejection(one) ? [] : one.events)),
      decision.events,
    );
    same((alone.at(-1) as Decision).state, decision.state);
  }

  private askOneByOne(batch: Step['batch']) {
    const commands: Command[] = [];
    const alone: (Decision | Rejection)[] = [];
    let state = this.state;
    const liveBefore = new Set(state.lifecycle === 'none' ? [] : state.runs.map(({ id }) => id));
    for (const intent of batch) {
      const command =
        state === initialState
          ? toCommand({ ...intent, kind: 'create_thread' }, state, this.names)
          : toCommand(intent, state, this.names);
      const decision = this.decide([command], state, liveBefore);
      commands.push(command);
      alone.push(decision);
      note(command, decision);
      if (!isRejection(decision)) state = decision.state;
    }
    return { commands, alone };
  }

  private decide(commands: Command[], state: ThreadState, endedRuns?: Set<string>): Decision | Rejection {
    const decision = decide(commands, state, new Date(this.now).toISOString(), endedRuns);
    return isRejection(decision) ? decision : { ...decision, state: deepFreeze(decision.state) };
  }

  private follow(before: ThreadState, { events, state }: Decision): void {
    let folded = before;
    for (const event of events) {
      this.oracle.see(event);
      const next = evolve(folded, event);
      if (next === folded) same(UNFOLDED.includes(event.type), true);
      folded = next;
    }
    same(folded, state);
    if (events.length === 0) same(state === before, true);
    this.state = state;
    this.checkState(state);
    this.checkWork(before, state);
  }

  private checkState(state: ThreadState): void {
    const { oracle } = this;
    if (state.lifecycle === 'none') return same(oracle.status, null);
    const { runs, newestRun } = state;
    same(
      runs.map(({ id, status, attempt, dispatch }) => [id, status, attempt, dispatch]),
      oracle.live().map(({ id, status, attempt, dispatch }) => [id, status, attempt, dispatch]),
    );
    same([newestRun?.id, newestRun?.status], [oracle.newest()?.id, oracle.newest()?.status]);
    same([state.status, threadStatus(state), oracle.status], Array(3).fill(oracle.expectedStatus()));
    const stored = JSON.stringify(state);
    same(stored.length <= MAX_STATE_LENGTH, true);
    same(JSON.parse(stored), state);
  }

  /** Checks that each live Run has one work item, and no other Run has one. */
  private checkWork(before: ThreadState, after: ThreadState): void {
    const { rows, gone } = workChanges(before, after, LEASE_MS);
    for (const runId of gone) same(this.rows.delete(runId), true);
    for (const row of rows) this.rows.set(row.runId, row);
    const runs = after.lifecycle === 'none' ? [] : after.runs;
    same([...this.rows.values()].sort(byRun), runs.map((run, i) => expectedRow(run, i === 0)).sort(byRun));
  }
}

/** Events that change only the log, or that may have nothing left to change. */
const UNFOLDED = [
  'thread.title_set',
  'message.added',
  'files.updated',
  'assistant.text_added',
  'assistant.message_added',
  'tool.completed',
  'tool.started',
  'usage.recorded',
];

function expectedRow(run: LiveRun, current: boolean): WorkItem {
  const { id: runId, dispatch, attempt } = run;
  const place = { runId, organizationId: 'ORGANIZATION', agentId: 'AGENT', dispatch, attempt };
  const row = { ...place, queueMs: LIMITS.queueMs, workMs: LIMITS.workMs, holder: null };
  if (run.status === 'waiting_input') return { ...row, state: 'waiting', dueInMs: LIMITS.waitMs };
  if (run.status !== 'queued') return { ...row, state: 'leased', holder: run.holder, dueInMs: LEASE_MS };
  if (!current) return { ...row, state: 'delayed', dueInMs: null };
  return run.delayMs > 0
    ? { ...row, state: 'delayed', dueInMs: run.delayMs }
    : { ...row, state: 'ready', dueInMs: LIMITS.queueMs };
}

const byRun = (a: WorkItem, b: WorkItem) => (a.runId < b.runId ? -1 : 1);

function note(command: Command, decision: Decision | Rejection): void {
  if (isRejection(decision)) {
    seen.rejected.add(command.type);
    seen.codes.add(decision.rejected);
    return;
  }
  if (decision.events.length > 0) seen.accepted.add(command.type);
  for (const { type } of decision.events) seen.events.add(type);
}

function deepFreeze<Value>(value: Value): Value {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value;
  Object.values(Object.freeze(value)).forEach(deepFreeze);
  return value;
}

/** Steps that failed once, with a real fault or with a planted one that random steps did not find. */
const FAILED_ONCE: Step[][] = [
  // The Run behind is interrupted while the current Run is queued. The current Run did not follow an ended Run.
  [
    { afterMs: 0, batch: [{ kind: 'create_thread', run: 0, off: 0, pick: 0 }] },
    { afterMs: 1, batch: [{ kind: 'add_message', run: 0, off: 0, pick: 0 }] },
    { afterMs: 1, batch: [{ kind: 'add_message', run: 0, off: 0, pick: 0 }] },
    { afterMs: 1, batch: [{ kind: 'interrupt', run: 1, off: 0, pick: 1 }] },
  ],
];

const holds = fc.property(anySteps, (steps) => {
  const thread = new RandomThread();
  for (const step of steps) thread.take(step);
});
const ROUND = 400;
/** About one round in 250 leaves something out by chance. Then another round runs. */
const MOST_ROUNDS = 10;

test('random commands keep the invariants of the stream, and all derived data agrees with it', () => {
  fc.assert(holds, { ...randomRuns(ROUND), examples: FAILED_ONCE.map((steps) => [steps]) });
});

test('the random commands cover all commands, accepted and rejected, and all events', () => {
  for (let round = 1; round < MOST_ROUNDS && !isAllSeen(); round++) fc.assert(holds, randomRuns(ROUND, round));
  expect([...seen.accepted].sort()).toEqual(COMMANDS);
  expect([...seen.rejected].sort()).toEqual(expect.arrayContaining(REFUSED));
  expect([...seen.events].sort()).toEqual(EVENTS);
  expect(seen.codes.size).toBeGreaterThanOrEqual(CODES);
});

const isAllSeen = (): boolean =>
  COMMANDS.every((type) => seen.accepted.has(type)) &&
  REFUSED.every((type) => seen.rejected.has(type)) &&
  EVENTS.every((type) => seen.events.has(type)) &&
  seen.codes.size >= CODES;

const COMMANDS: Command['type'][] = [
  'add_message',
  'archive',
  'attach_file',
  'claim_run',
  'complete_run',
  'create_thread',
  'decide_permission',
  'delete_file',
  'detach_file',
  'expire_run',
  'fail_run',
  'hand_over_run',
  'interrupt',
  'reclaim_run',
  'record',
  'retry_run',
  'set_title',
  'start_run',
  'terminate_thread',
  'unarchive',
  'wait_for_decisions',
];
const ALWAYS_ACCEPTED = ['unarchive', 'terminate_thread'];
const REFUSED = COMMANDS.filter((type) => !ALWAYS_ACCEPTED.includes(type));
const CODES = 11;

const EVENTS = [
  'assistant.message_added',
  'assistant.text_added',
  'files.updated',
  'message.added',
  'run.cancelled',
  'run.claimed',
  'run.completed',
  'run.expired',
  'run.failed',
  'run.queued',
  'run.requeued',
  'run.resumed',
  'run.started',
  'run.waiting',
  'thread.archived',
  'thread.created',
  'thread.status_entered',
  'thread.terminated',
  'thread.title_set',
  'thread.unarchived',
  'tool.completed',
  'tool.confirmation_decided',
  'tool.started',
  'usage.recorded',
];
