import { decide, initialState, isRejection, type Command, type ThreadState } from '#domain';
import type { LoadedThread } from '#event-store';
import { noSummaries } from '#projections';
import { planBatch } from './event-batch.ts';

const NOW = '2026-11-21T00:00:00.000Z';
const limits = { queueMs: 1, workMs: 1, waitMs: 1, maxLosses: 3 };

const create: Command = {
  type: 'create_thread',
  agentId: 'A',
  organizationId: 'O',
  kind: 'cattle',
  userId: 'u',
  owner: { personId: 'P', serviceTokenId: null },
};
const message = (runId: string, whenBusy: 'reject' | 'enqueue' | 'interrupt' = 'reject'): Command => ({
  type: 'add_message',
  text: 't',
  requestId: null,
  fileIds: [],
  run: { runId, agentVersion: 1, limits },
  whenBusy,
  by: 'P',
});
const interrupt = (runId: string | null): Command => ({ type: 'interrupt', runId, by: 'P' });

function threadAfter(...commands: Command[]): LoadedThread {
  const decision = decide(commands, initialState, NOW);
  if (isRejection(decision)) throw new Error(decision.message);
  return thread(decision.state);
}

function thread(state: ThreadState): LoadedThread {
  return { threadId: 'T', version: 1, lastEventId: 'E', lastOccurredAt: NOW, state, summaries: noSummaries };
}

const none = new Set<string>();

it('names the Run of each event', () => {
  const commands = [interrupt(null), message('R2'), interrupt('R2'), message('R3')];
  const plan = planBatch(commands, none, threadAfter(create, message('R1')));
  expect(plan).toEqual({ commands, runIds: ['R1', 'R2', 'R2', 'R3'], warnings: [] });
});

it('names the new Run where a message interrupts the old one, and the cancelled one where another follows', () => {
  const before = threadAfter(create, message('R1'));
  expect(planBatch([message('R2', 'interrupt')], none, before)).toMatchObject({ runIds: ['R2'] });
  const queue = [message('R2', 'enqueue'), interrupt(null), interrupt(null)];
  expect(planBatch(queue, none, before)).toMatchObject({ runIds: ['R2', 'R1', 'R2'] });
});

it('leaves out an interrupt of a Run that has ended, before the batch or by it', () => {
  const before = threadAfter(create, message('R1'));
  expect(planBatch([interrupt('R0'), interrupt('R1'), interrupt('R1')], new Set(['R0']), before)).toEqual({
    commands: [interrupt('R1')],
    runIds: ['R0', 'R1', 'R1'],
    warnings: [
      { code: 'run_already_ended', message: 'body.events.0: The Run R0 had already ended.' },
      { code: 'run_already_ended', message: 'body.events.2: The Run R1 had already ended.' },
    ],
  });
});

it('warns only of a message that waits behind other Runs', () => {
  const batch = [message('R2', 'enqueue'), message('R3', 'enqueue'), interrupt('R1')];
  expect(planBatch(batch, none, threadAfter(create, message('R1')))).toMatchObject({
    warnings: [
      { code: 'message_queued', message: 'body.events.0: The message waits behind 1 Run of the Thread.' },
      { code: 'message_queued', message: 'body.events.1: The message waits behind 2 Runs of the Thread.' },
    ],
  });
  const idle = [message('R2', 'enqueue'), interrupt(null), message('R3', 'enqueue'), message('R4', 'interrupt')];
  expect(planBatch(idle, none, threadAfter(create))).toMatchObject({ runIds: ['R2', 'R2', 'R3', 'R4'], warnings: [] });
});

it.each([
  ['a Run that is not known to have ended', [interrupt('R9')], 'run_not_live'],
  ['no active Run', [interrupt('R1'), interrupt(null)], 'no_active_run'],
  ['a message behind a message', [interrupt(null), message('R2'), message('R3')], 'thread_busy'],
])('is refused whole for %s', (_, commands, rejected) => {
  expect(planBatch(commands, none, threadAfter(create, message('R1')))).toMatchObject({ rejected });
});

it('is refused by an archived Thread though the Run has ended', () => {
  const archived = threadAfter(create, { type: 'archive' });
  expect(planBatch([interrupt('R1')], new Set(['R1']), archived)).toMatchObject({ rejected: 'thread_archived' });
});

it('is refused by a Thread that is gone', () => {
  expect(planBatch([interrupt(null)], none, thread(initialState))).toMatchObject({ rejected: 'thread_missing' });
});
