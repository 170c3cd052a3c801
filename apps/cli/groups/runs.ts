import type { ManagedRun } from '#contract';
import type { CommandSpec, Group } from '../command-spec.ts';
import type { Paging } from '../session.ts';
import { renderFields, type Column } from '../table.ts';
import { changeRuns, isBulk } from './bulk.ts';
import { PAGING } from './paging.ts';
import { ENDED, ENDED_SINCE, LIVE, readRunFilter, runFilterOptions, type RunFilterOptions } from './run-filter.ts';
import { describeTimeline } from './run-timeline.ts';
import { eventColumns } from './thread-events.ts';

const STATUSES = [...LIVE, 'completed', ...ENDED];

export const runColumns: Column<ManagedRun>[] = [
  { head: 'id', value: ({ id }) => id },
  { head: 'thread', value: ({ threadId }) => threadId, wide: true },
  { head: 'status', value: ({ status }) => status },
  { head: 'trigger', value: ({ trigger }) => trigger, wide: true },
  { head: 'agent', value: ({ agentName }) => agentName, cut: true },
  { head: 'organization', value: ({ organizationName }) => organizationName, cut: true, wide: true },
  { head: 'user id', value: ({ userId }) => userId, cut: true, wide: true },
  { head: 'created', value: ({ createdAt }) => createdAt },
  { head: 'worker', value: ({ work }) => work?.holder, cut: true, wide: true },
  { head: 'error', value: ({ error }) => error?.code },
  {
    head: 'cause',
    value: ({ status, cause }) => (status === 'failed' || LIVE.includes(status) ? cause?.summary : null),
    cut: true,
  },
];

const fieldsOf = (run: ManagedRun): string =>
  renderFields([
    ...runColumns.map(({ head, value }) => [head, value(run)] as const),
    ['message', run.error?.message],
    ['remedy', run.mayBeRetried ? run.remedy : null],
    ...causeFieldsOf(run.cause),
    ['may be retried', retryText(run)],
    ['title', run.threadTitle],
    ['started', run.startedAt],
    ['completed', run.completedAt],
    ['updated', run.updatedAt],
    ['organization id', run.organizationId],
    ['agent id', run.agentId],
    ...workFieldsOf(run.work),
  ]);

/** Returns the state of a Run that has not ended. */
function workFieldsOf(work: ManagedRun['work']): [string, string | number | null][] {
  if (work === null) return [];
  const { state, limitedBy, since, dueAt, dispatch, attempt } = work;
  return [
    ['work', state],
    ['limited by', limitedBy],
    ['since', since],
    ['due', dueAt],
    ['dispatch', dispatch],
    ['attempt', attempt],
  ];
}

/** Returns whether a Run that has ended can be retried, and if not, why. */
function retryText({ status, mayBeRetried, newerRunId }: ManagedRun): string | null {
  if (LIVE.includes(status)) return null;
  if (mayBeRetried) return 'yes';
  if (status === 'completed' || newerRunId === undefined) return 'no';
  return newerRunId === null
    ? 'no: its Thread is archived or terminated'
    : `no: its Thread has the newer Run ${newerRunId}`;
}

/** Returns the known details of the last failed attempt, also of a Run that has completed since. */
function causeFieldsOf(cause: ManagedRun['cause']): [string, string | number][] {
  if (!cause) return [];
  const { attempt, source, type, code, requestId, message, waitedMs, step } = cause;
  const fields: [string, string | number | null | undefined][] = [
    ['failed attempt', attempt],
    ['failed by', source === 'tool_server' ? 'tool server' : source],
    ['cause type', type],
    ['cause code', code],
    ['cause message', message],
    ['request id', requestId],
    ['waited', waitedMs === undefined ? null : `${(waitedMs / 1_000).toFixed(3)} s`],
    ['last step', step],
  ];
  return fields.filter((field): field is [string, string | number] => field[1] !== null && field[1] !== undefined);
}

type ListOptions = Paging & RunFilterOptions & { thread?: string; ended?: boolean; mayBeRetried?: boolean };

const list: CommandSpec<[], ListOptions> = {
  usage: 'list',
  description:
    'List live Runs, newest first. --ended, --thread, --user-id, --external-ref, --error, --cause, --ended-since, --may-be-retried and a --status of ended Runs include ended Runs.',
  options: [
    { flags: '--thread <threadId>', description: 'all Runs of this Thread' },
    { flags: '--ended', description: 'include ended Runs' },
    ...runFilterOptions({ flags: '--status <status>', description: 'only this status', choices: STATUSES }),
    ENDED_SINCE,
    { flags: '--may-be-retried', description: 'only Runs that can be retried: the newest of their Threads' },
    ...PAGING,
  ],
  examples: [
    ['run list'],
    ['run list --agent echo --status waiting_input'],
    ['run list --error provider_unavailable --since 12h'],
    ['run list --user-id customer-7'],
    ['run list --status failed --may-be-retried'],
    ['run list --thread 01JD0000000000000000000000'],
  ],
  async run(session, _, { thread, ended, mayBeRetried, ...options }) {
    const { status, error, cause, userId, externalRef, endedSince } = options;
    const hasEnded = status !== undefined && !LIVE.includes(status);
    const isOfAll =
      ended || mayBeRetried || hasEnded || (error ?? cause ?? userId ?? externalRef ?? endedSince) !== undefined;
    const filter = await readRunFilter(session, options);
    const query = {
      ...filter,
      scope: isOfAll ? ('all' as const) : ('live' as const),
      threadId: thread,
      mayBeRetried: mayBeRetried ? ('true' as const) : undefined,
    };
    await session.printPages(options, runColumns, async (page) => {
      const { runs, nextCursor } = await session.call('listRuns', { query: { ...page, ...query } });
      return { rows: runs, next: nextCursor };
    });
  },
};

const show: CommandSpec<[string]> = {
  usage: 'show <runId>',
  description: 'Show a Run with its input and output, timeline, tokens and cost.',
  examples: [['run show 01JD0000000000000000000000'], ['run show 01JD0000000000000000000000 --json']],
  async run(session, [runId]) {
    const { run, timeline } = await session.call('getRunTimeline', { params: { runId } });
    await session.print({ ...run, timeline }, `${fieldsOf(run)}\n\n${describeTimeline(session, timeline)}`);
  },
};

const events: CommandSpec<[string], Paging> = {
  usage: 'events <runId>',
  description: 'List the stored events of a Run, oldest first: its messages, tool calls with results, and its end.',
  options: PAGING,
  examples: [['run events 01JD0000000000000000000000'], ['run events 01JD0000000000000000000000 --all --json']],
  async run(session, [runId], paging) {
    await session.printPages(paging, eventColumns, async ({ limit, cursor }) => {
      const call = { params: { runId }, query: { limit, afterVersion: cursor } };
      const { events: rows, nextAfterVersion } = await session.call('listRunEvents', call);
      return { rows, next: nextAfterVersion === null ? null : String(nextAfterVersion) };
    });
  },
};

const cancel: CommandSpec<string[], RunFilterOptions> = {
  usage: 'cancel [runId]',
  description: 'Cancel a Run, or all live Runs that match filters, after a question with their number.',
  options: runFilterOptions({ flags: '--status <status>', description: 'only this status', choices: LIVE }),
  examples: [
    ['run cancel 01JD0000000000000000000000'],
    ['run cancel 01JD0000000000000000000000 --yes'],
    ['run cancel --agent support-bot --since 1h'],
  ],
  asks: ([runId], options) => (isBulk(runId, options) ? null : `Cancel Run ${runId}?`),
  async run(session, [runId], options) {
    if (isBulk(runId, options)) return changeRuns(session, 'cancel', options);
    const { run } = await session.call('cancelRun', { params: { runId: runId! } });
    await session.print(run, fieldsOf(run));
  },
};

const retry: CommandSpec<string[], RunFilterOptions> = {
  usage: 'retry [runId]',
  description:
    'Retry a failed, cancelled or expired Run as a new Run of its Thread. With filters: all failed Runs that match, after a question with their number.',
  options: [
    ...runFilterOptions({
      flags: '--status <status>',
      description: 'Runs with this status instead of failed ones',
      choices: ENDED,
    }),
    ENDED_SINCE,
  ],
  examples: [
    ['run retry 01JD0000000000000000000000'],
    ['run retry --agent support-bot --error provider_unavailable --since 12h'],
    ['run retry --cause "HTTP 401 from api.example"'],
    ['run retry --user-id customer-7 --yes'],
  ],
  asks: () => null,
  async run(session, [runId], options) {
    if (isBulk(runId, options)) return changeRuns(session, 'retry', options);
    const { run } = await session.call('retryRun', { params: { runId: runId! } });
    await session.print(run, fieldsOf(run));
  },
};

export const runs: Group = {
  name: 'run',
  description: 'Runs of all users.',
  commands: [list, show, events, cancel, retry],
};
