import { inTurn, runsAhead, type FairShares, type ReadyRun } from './fair-order.ts';

/** Parses `A1 A2 b1`: Runs of A and B in their order. An organization in lower case has no slot. */
const runs = (text: string): ReadyRun[] =>
  text.split(' ').map((name) => ({
    runId: name.toUpperCase(),
    threadId: 'thread',
    dispatch: 1,
    organizationId: name[0]!.toUpperCase(),
    hasSlot: name[0] === name[0]!.toUpperCase(),
    turn: Number(name.slice(1)),
    maybeMore: false,
  }));

const shares = (used: Record<string, number> = {}, more: Partial<FairShares> = {}): FairShares => ({
  usedBy: (id) => used[id] ?? 0,
  runSeconds: 1,
  servedAt: () => 0,
  isEnqueued: () => false,
  ...more,
});

const ids = (found: ReadyRun[]): string => found.map(({ runId }) => runId).join(' ');

it.each([
  ['one Run of each organization without a slot, in the order of the rows', 'c1 b1 A1 A2 b2', {}, 'C1 B1'],
  ['no Run of organizations with about the same use', 'A1 B1 A2', { A: 100, B: 60 }, ''],
  ['an organization that has used less than half of the heaviest user', 'A1 B1 C1', { A: 100, B: 40, C: 10 }, 'C1 B1'],
  ['organizations without a slot before those that have used little', 'A1 B1 c1', { A: 100, C: 50 }, 'C1 B1'],
  ['no Run for a difference of one or two Runs', 'A1 B1', { A: 2, B: 0.5 }, ''],
])('puts ahead %s', (_, rows, used, expected) => {
  expect(ids(runsAhead(runs(rows), shares(used)))).toBe(expected);
});

it.each([
  ['by turns if no organization has used slots', 'A1 B1 C1 A2 B2 A3', {}, 'A1 B1 C1 A2 B2 A3'],
  ['the least user first, until its use is equal', 'A1 B1 A2 B2 A3 B3', { A: 2.5 }, 'B1 B2 B3 A1 A2 A3'],
  ['by turns once their use is equal', 'A1 B1 A2 B2 A3 B3', { A: 1.5 }, 'B1 B2 A1 B3 A2 A3'],
])('orders %s', (_, rows, used, expected) => {
  expect(ids(inTurn(runs(rows), shares(used)))).toBe(expected);
});

it('counts enqueued Runs of an organization as its use', () => {
  const isEnqueued = ({ runId }: ReadyRun): boolean => ['A1', 'A2'].includes(runId);
  expect(ids(inTurn(runs('A1 B1 A2 B2 A3 B3'), shares({}, { isEnqueued })))).toBe('B1 B2 A3 B3');
});

it('prefers the organization that was served longer ago if the use is equal', () => {
  const servedAt = (id: string): number => ({ A: 3, B: 1, C: 2 })[id] ?? 0;
  expect(ids(inTurn(runs('A1 B1 C1'), shares({}, { servedAt })))).toBe('B1 C1 A1');
});
