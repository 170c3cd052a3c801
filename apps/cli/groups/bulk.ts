import { setTimeout as sleep } from 'node:timers/promises';
import type { BulkAction, BulkActionRun } from '#contract';
import type { CommandSpec, Group } from '../command-spec.ts';
import { CommandError } from '../exit-codes.ts';
import type { Paging, Session } from '../session.ts';
import { renderFields, type Column } from '../table.ts';
import { showInLine } from '../text.ts';
import { PAGING } from './paging.ts';
import { hasFilters, readRunFilter, type RunFilterOptions } from './run-filter.ts';

const POLL_MS = 250;

const DONE = { cancel: 'cancelled', retry: 'retried' } as const;

const countRuns = (count: number): string => (count === 1 ? '1 Run' : `${count} Runs`);
const countOf = (count: number, one: string, many: string): string => `${count} ${count === 1 ? one : many}`;

/** Returns why Runs are not changed, one line each; empty if all are. */
function reasonLines({ action, notDone, reasons }: BulkAction): string[] {
  if (notDone === 0) return [];
  return [
    `${countRuns(notDone)} not ${DONE[action]}:`,
    ...reasons.map(({ reason, count }) => `  ${count}  ${showInLine(reason)}`),
  ];
}

/** Returns what a planned bulk action will change, as a question. */
function questionOf(plan: BulkAction): string {
  const { action, left, runs, touches, filter } = plan;
  const { organizations, agents, firstCreatedAt, lastCreatedAt } = touches;
  const whose = `of ${countOf(agents, 'Agent', 'Agents')} in ${countOf(organizations, 'organization', 'organizations')}`;
  const anyTime = (filter.since ?? filter.endedSince) === undefined ? ', created at any time' : '';
  const created = runs === 1 ? `created ${firstCreatedAt}` : `created from ${firstCreatedAt} to ${lastCreatedAt}`;
  return [
    `${countRuns(runs)} ${runs === 1 ? 'matches' : 'match'}${anyTime}: ${whose}, ${created}.`,
    ...reasonLines(plan),
    `${action === 'cancel' ? 'Cancel' : 'Retry'} ${countRuns(left)}?`,
  ].join('\n');
}

const summaryOf = (bulk: BulkAction): string => {
  const { state, action, runs, done, left } = bulk;
  if (state === 'planned') return `Planned for ${countRuns(left)}, and not started. Nothing was changed.`;
  const stopped = state === 'stopped' ? ` Stopped; ${countRuns(left)} unchanged.` : '';
  return [`${done} of ${countRuns(runs)} ${DONE[action]}.${stopped}`, ...reasonLines(bulk)].join('\n');
};

/** Cancels or retries all Runs that match, after a question. Throws CommandError. */
export async function changeRuns(
  session: Session,
  action: BulkAction['action'],
  options: RunFilterOptions,
): Promise<void> {
  const filter = await readRunFilter(session, options);
  const { bulkAction: plan } = await session.call('planBulkAction', { body: { action, filter } });
  if (plan.left === 0) {
    const none = plan.runs === 0 ? 'No Run matches. ' : '';
    return session.print(plan, [`${none}Nothing was changed.`, ...reasonLines(plan)].join('\n'));
  }
  await session.confirm(questionOf(plan));
  await session.call('startBulkAction', { params: { bulkActionId: plan.id } });
  await follow(session, plan.id);
}

async function follow(session: Session, id: string): Promise<void> {
  const progress = session.progress();
  const hint = `The service continues. To follow: spool bulk watch ${id}. To stop: spool bulk stop ${id}`;
  const poll = async (signal: AbortSignal): Promise<BulkAction> => {
    for (;;) {
      const { bulkAction } = await session.call('getBulkAction', { params: { bulkActionId: id } });
      if (bulkAction.state !== 'running') return bulkAction;
      const { action, runs, done, notDone } = bulkAction;
      progress.report(`${done + notDone} of ${countRuns(runs)}: ${done} ${DONE[action]}, ${notDone} not`);
      await sleep(POLL_MS, undefined, { signal });
    }
  };
  try {
    const ended = await session.interruptible(poll);
    progress.end();
    if (ended === undefined) session.note(hint);
    else await session.print(ended, summaryOf(ended));
  } catch (error) {
    progress.end();
    session.note(hint);
    throw error;
  }
}

const columns: Column<BulkAction>[] = [
  { head: 'id', value: ({ id }) => id },
  { head: 'action', value: ({ action }) => action },
  { head: 'state', value: ({ state }) => state },
  { head: 'runs', value: ({ runs }) => runs },
  { head: 'done', value: ({ done }) => done },
  { head: 'not done', value: ({ notDone }) => notDone },
  { head: 'left', value: ({ left }) => left },
  { head: 'started by', value: ({ startedBy }) => startedBy?.name, cut: true },
  { head: 'started', value: ({ startedAt }) => startedAt, wide: true },
];

const runColumns: Column<BulkActionRun>[] = [
  { head: 'run', value: ({ id }) => id },
  { head: 'thread', value: ({ threadId }) => threadId, wide: true },
  { head: 'outcome', value: ({ outcome }) => outcome.replace('_', ' ') },
  { head: 'new run', value: ({ newRunId }) => newRunId },
  { head: 'reason', value: ({ reason }) => reason, cut: true },
];

const fieldsOf = (bulk: BulkAction): string =>
  renderFields([
    ...columns.map(({ head, value }) => [head, value(bulk)] as const),
    ...Object.entries(bulk.filter),
    ['planned', bulk.plannedAt],
    ['ended', bulk.endedAt],
  ]);

const list: CommandSpec<[], Paging> = {
  usage: 'list',
  description: 'List bulk actions, newest first. They are kept for 30 days.',
  options: PAGING,
  examples: [['bulk list'], ['bulk list --all --json']],
  async run(session, _, paging) {
    await session.printPages(paging, columns, async (page) => {
      const { bulkActions, nextCursor } = await session.call('listBulkActions', { query: page });
      return { rows: bulkActions, next: nextCursor };
    });
  },
};

const show: CommandSpec<[string]> = {
  usage: 'show <bulkActionId>',
  description: 'Show a bulk action and its progress.',
  examples: [['bulk show 01JD0000000000000000000000']],
  async run(session, [bulkActionId]) {
    const { bulkAction } = await session.call('getBulkAction', { params: { bulkActionId } });
    await session.print(bulkAction, [fieldsOf(bulkAction), ...reasonLines(bulkAction)].join('\n'));
  },
};

const OUTCOMES = ['done', 'not_done', 'left'] as const;

const runsOf: CommandSpec<[string], Paging & { outcome?: BulkActionRun['outcome'] }> = {
  usage: 'runs <bulkActionId>',
  description: 'List the Runs of a bulk action, newest first, with the reason if one is not changed.',
  options: [{ flags: '--outcome <outcome>', description: 'only Runs with this outcome', choices: OUTCOMES }, ...PAGING],
  examples: [
    ['bulk runs 01JD0000000000000000000000'],
    ['bulk runs 01JD0000000000000000000000 --outcome not_done --all'],
  ],
  async run(session, [bulkActionId], { outcome, ...paging }) {
    await session.printPages(paging, runColumns, async (page) => {
      const call = { params: { bulkActionId }, query: { ...page, outcome } };
      const { runs, nextCursor } = await session.call('listBulkActionRuns', call);
      return { rows: runs, next: nextCursor };
    });
  },
};

const watch: CommandSpec<[string]> = {
  usage: 'watch <bulkActionId>',
  description: 'Show the progress of a bulk action until it ends. Ctrl+C does not stop it.',
  examples: [['bulk watch 01JD0000000000000000000000']],
  run: (session, [bulkActionId]) => follow(session, bulkActionId),
};

const stop: CommandSpec<[string]> = {
  usage: 'stop <bulkActionId>',
  description: 'Stop a bulk action before its next Runs. Changed Runs stay changed.',
  examples: [['bulk stop 01JD0000000000000000000000']],
  async run(session, [bulkActionId]) {
    const { bulkAction } = await session.call('stopBulkAction', { params: { bulkActionId } });
    await session.print(bulkAction, summaryOf(bulkAction));
  },
};

export const bulk: Group = {
  name: 'bulk',
  description: 'Bulk actions: the Runs that `run retry` or `run cancel` changed by filters.',
  commands: [list, show, runsOf, watch, stop],
};

/** Returns whether filters are given instead of the id of a Run. Throws CommandError if both or neither are. */
export function isBulk(runId: string | undefined, options: RunFilterOptions): boolean {
  const hasFilter = hasFilters(options);
  if (hasFilter === (runId !== undefined))
    throw new CommandError('usage', 'Give either the id of a Run, or at least one filter, such as --agent or --since.');
  return hasFilter;
}
