import type { ManagedRun } from '#contract';
import type { CommandSpec, Group } from '../command-spec.ts';
import { agentId, optional, organizationId } from '../resolve.ts';
import type { Paging } from '../session.ts';
import { renderFields, type Column } from '../table.ts';
import { parseSince } from '../when.ts';
import { PAGING } from './paging.ts';
import { describeTimeline } from './run-timeline.ts';

const LIVE: readonly ManagedRun['status'][] = ['queued', 'booting', 'running', 'waiting_input'];
const STATUSES = [...LIVE, 'completed', 'failed', 'cancelled', 'expired'];

export const runColumns: Column<ManagedRun>[] = [
  { head: 'id', value: ({ id }) => id },
  { head: 'thread', value: ({ threadId }) => threadId, wide: true },
  { head: 'status', value: ({ status }) => status },
  { head: 'trigger', value: ({ trigger }) => trigger, wide: true },
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
    ['remedy', run.remedy],
    ...causeFieldsOf(run.cause),
    ['may be retried', run.completedAt === null ? null : run.mayBeRetried],
    ['title', run.threadTitle],
    ['started', run.startedAt],
    ['completed', run.completedAt],
    ['updated', run.updatedAt],
    ['organization', run.organizationId],
    ['agent', run.agentId],
    ['work', run.work?.state],
    ['limited by', run.work?.limitedBy],
    ['since', run.work?.since],
    ['due', run.work?.dueAt],
    ['dispatch', run.work?.dispatch],
    ['attempt', run.work?.attempt],
  ]);

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

type ListOptions = Paging & {
  thread?: string;
  ended?: boolean;
  org?: string;
  agent?: string;
  status?: ManagedRun['status'];
  error?: string;
  userId?: string;
  since?: string;
};

const list: CommandSpec<[], ListOptions> = {
  usage: 'list',
  description: 'List live Runs, newest first. --ended, --thread and --user-id include ended Runs.',
  options: [
    { flags: '--thread <threadId>', description: 'all Runs of this Thread' },
    { flags: '--ended', description: 'include ended Runs' },
    { flags: '--org <org>', description: 'only this organization’s' },
    { flags: '--agent <agent>', description: 'only this Agent’s' },
    { flags: '--status <status>', description: 'only this status; an ended one needs no --ended', choices: STATUSES },
    { flags: '--error <code>', description: 'only Runs that failed with this code; needs no --ended' },
    {
      flags: '--user-id <id>',
      description: 'only Runs of this user id of the application, including ended ones',
    },
    {
      flags: '--since <when>',
      description: 'only Runs created since a date, or a time ago: 7d, 12h',
      parse: parseSince,
    },
    ...PAGING,
  ],
  examples: [
    ['run list'],
    ['run list --agent echo --status waiting_input'],
    ['run list --error provider_unavailable --since 12h'],
    ['run list --user-id customer-7'],
    ['run list --thread 01JD0000000000000000000000'],
  ],
  async run(session, _, { thread, ended, org, agent, status, error, userId, since, ...paging }) {
    const organization = await optional(organizationId, session, org);
    const hasEnded = status !== undefined && !LIVE.includes(status);
    const filter = {
      scope: ended || hasEnded || (error ?? userId) !== undefined ? ('all' as const) : ('live' as const),
      threadId: thread,
      organizationId: organization,
      agentId: agent === undefined ? undefined : await agentId(session, agent, organization),
      status,
      errorCode: error,
      userId,
      since,
    };
    await session.printPages(paging, runColumns, async (page) => {
      const { runs, nextCursor } = await session.call('listRuns', { query: { ...page, ...filter } });
      return { rows: runs, next: nextCursor };
    });
  },
};

const show: CommandSpec<[string]> = {
  usage: 'show <runId>',
  description: 'Show a Run and its timeline, tokens and cost.',
  examples: [['run show 01JD0000000000000000000000'], ['run show 01JD0000000000000000000000 --json']],
  async run(session, [runId]) {
    const { run, timeline } = await session.call('getRunTimeline', { params: { runId } });
    await session.print({ ...run, timeline }, `${fieldsOf(run)}\n\n${describeTimeline(session, timeline)}`);
  },
};

type Operation = 'cancelRun' | 'retryRun';

const command = (
  spec: Pick<CommandSpec<[string]>, 'usage' | 'description' | 'examples' | 'asks'>,
  operation: Operation,
): CommandSpec<[string]> => ({
  ...spec,
  async run(session, [runId]) {
    const { run } = await session.call(operation, { params: { runId } });
    await session.print(run, fieldsOf(run));
  },
});

export const runs: Group = {
  name: 'run',
  description: 'Runs of all users.',
  commands: [
    list,
    show,
    command(
      {
        usage: 'cancel <runId>',
        description: 'Cancel a Run at once.',
        examples: [['run cancel 01JD0000000000000000000000'], ['run cancel 01JD0000000000000000000000 --yes']],
        asks: ([runId]) => `Cancel Run ${runId}?`,
      },
      'cancelRun',
    ),
    command(
      {
        usage: 'retry <runId>',
        description: 'Retry a failed, cancelled or expired Run as a new Run of its Thread.',
        examples: [['run retry 01JD0000000000000000000000']],
      },
      'retryRun',
    ),
  ],
};
