import type { Overview, Problem } from '#contract';
import { InvalidArgumentError } from 'commander';
import type { CommandSpec } from '../command-spec.ts';
import type { Options } from '../options.ts';
import { EXIT } from '../exit-codes.ts';
import type { Session } from '../session.ts';
import { renderFields, type Column } from '../table.ts';
import { countOf } from '../text.ts';
import { parseDuration } from '../when.ts';

const problemColumns: Column<Problem>[] = [
  { head: 'severity', value: ({ severity }) => severity },
  { head: 'problem', value: ({ kind }) => kind },
  { head: 'since', value: ({ since }) => since },
  { head: 'message', value: ({ message }) => message },
];

const runColumns: Column<Problem['runs'][number] & { kind: string }>[] = [
  { head: 'run', value: ({ id }) => id },
  { head: 'thread', value: ({ threadId }) => threadId, wide: true },
  { head: 'problem', value: ({ kind }) => kind },
  { head: 'status', value: ({ status }) => status },
  { head: 'error', value: ({ error }) => error?.code },
  { head: 'agent', value: ({ agentName }) => agentName, cut: true, wide: true },
];

const failureColumns: Column<Overview['failures'][number]>[] = [
  { head: 'failures', value: ({ count }) => count },
  { head: 'error', value: ({ code }) => code },
  { head: 'last', value: ({ lastAt }) => lastAt },
  { head: 'last run', value: ({ lastRunId }) => lastRunId },
];

const ms = (value: number | null): string => (value === null ? '-' : `${Math.round(value)} ms`);

function fieldsOf({ runs, startLatency, queue, database, redis, windowMinutes }: Overview): string {
  const { workers } = queue;
  const slots = workers.reduce((sum, worker) => sum + worker.slots, 0);
  const { p50Ms, p95Ms, p99Ms } = startLatency;
  const { queued, booting, running, waiting_input, completed, failed, cancelled, expired } = runs;
  const used = `${database.connections} of ${database.maxConnections} connections`;
  return renderFields([
    ['live Runs', `${queued} queued, ${booting} booting, ${running} running, ${waiting_input} waiting for a person`],
    ['ended Runs', `${completed} completed, ${failed} failed, ${cancelled} cancelled, ${expired} expired`],
    [
      'start latency',
      `p50 ${ms(p50Ms)}, p95 ${ms(p95Ms)}, p99 ${ms(p99Ms)} of ${countOf(startLatency.count, 'start')}`,
    ],
    ['oldest ready', ms(queue.oldestReadyMs)],
    ['queue', queue.pausedAt !== null ? 'paused' : queue.awaySince !== null || queue.offered === null ? 'away' : 'ok'],
    ['workers', `${workers.length} with ${countOf(slots, 'slot')}, ${queue.runs.leased} taken`],
    [
      'PostgreSQL',
      `${database.version}, ${ms(database.latencyMs)}, ${used}, ${Math.round(database.sizeBytes / 2 ** 20)} MiB`,
    ],
    ['Redis', redis === null ? 'none' : redis.status === 'ok' ? `${redis.version}, ${ms(redis.latencyMs)}` : 'away'],
    ['window', countOf(windowMinutes, 'minute')],
  ]);
}

function textOf(session: Session, overview: Overview): string {
  const { problems, failures } = overview;
  const runs = problems.flatMap(({ kind, runs: oldest }) => oldest.map((run) => ({ ...run, kind })));
  const parts = [
    problems.length === 0 ? 'No problems.' : session.table(problemColumns, problems),
    ...(runs.length === 0 ? [] : [session.table(runColumns, runs)]),
    fieldsOf(overview),
    ...(failures.length === 0 ? [] : [session.table(failureColumns, failures)]),
  ];
  return parts.join('\n\n');
}

const MINUTES = { least: 5, most: 10_080 };

/** Throws InvalidArgumentError. */
function parseMinutes(text: string): number {
  const minutes = Math.ceil(parseDuration(text) / 60);
  if (minutes < MINUTES.least || minutes > MINUTES.most) throw new InvalidArgumentError('It must be 5m to 7d.');
  return minutes;
}

export const overview: CommandSpec<[], Options & { window?: number }> = {
  usage: 'overview',
  description: `Show current problems, what to do about them, and the load. Exits with ${EXIT.failed} if a problem is critical.`,
  options: [{ flags: '--window <time>', description: 'time window: 5m to 7d, default 1h', parse: parseMinutes }],
  examples: [['overview'], ['overview --window 1d'], ['overview --json']],
  async run(session, _, { window }) {
    const query = window === undefined ? {} : { windowMinutes: `${window}` };
    const { overview: answer } = await session.call('getOverview', { query });
    await session.print(answer, textOf(session, answer));
    if (answer.problems.some(({ severity }) => severity === 'critical')) session.found();
  },
};
