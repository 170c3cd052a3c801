import { z } from 'zod';
import { answeredUlid, dateTime } from '../scalars.ts';
import { count } from './parts.ts';
import { adminComponents, managedRun, queueStatus } from './records.ts';

const milliseconds = z.number().min(0);

const runsByStatus = {
  queued: count,
  booting: count,
  running: count,
  waiting_input: count,
  completed: count,
  failed: count,
  cancelled: count,
  expired: count,
} satisfies Record<z.output<typeof managedRun>['status'], z.ZodType>;

/** The kinds of problems whose Runs have not ended and wait for no person. */
export const liveProblem = z.enum(['lease_over', 'backlog', 'provider_failing']);
export type LiveProblem = z.output<typeof liveProblem>;

export const problem = z
  .strictObject({
    kind: z.enum([
      'database_slow',
      'queue_away',
      'redis_away',
      'queue_paused',
      'no_worker',
      'lost_files',
      ...liveProblem.options,
      'failed_runs',
      'waiting_runs',
    ]),
    id: z
      .string()
      .optional()
      .meta({ description: 'Stays the same while the problem lasts; earlier releases omit it.' }),
    severity: z.enum(['critical', 'warning', 'info']),
    message: z.string().meta({ description: 'The problem and what to do about it.' }),
    count: count.nullable().meta({ description: 'The number of affected items, or null.' }),
    since: dateTime.nullable().meta({ description: 'The time at which the oldest item was affected.' }),
    agentId: answeredUlid
      .nullable()
      .optional()
      .meta({ description: 'The Agent whose Runs failed with one cause; otherwise null or absent.' }),
    errorCode: z
      .string()
      .nullable()
      .optional()
      .meta({ description: 'The code of their error; otherwise null or absent.' }),
    cause: z.string().nullable().optional().meta({
      description: 'The summary of their cause, for the filter `cause` of listRuns; null or absent if it is not known.',
    }),
    runs: z
      .array(
        managedRun.pick({ id: true, threadId: true, agentName: true, status: true, error: true, mayBeRetried: true }),
      )
      .meta({ description: 'The oldest 5 affected Runs.' }),
  })
  .meta({ description: 'A problem that needs attention.' })
  .register(adminComponents, { id: 'Problem' });

export const overview = z
  .strictObject({
    at: dateTime,
    windowMinutes: z.int(),
    bucketSeconds: z.int().meta({ description: 'Length of each item of `series` in seconds.' }),
    problems: z.array(problem).meta({ description: 'Worst first; empty if there are no problems.' }),
    runs: z.strictObject(runsByStatus).meta({
      description: 'Live Runs by status now, and Runs that ended within the window by status.',
    }),
    series: z
      .array(
        z.strictObject({
          at: dateTime.meta({ description: 'Start of the interval.' }),
          created: count,
          completed: count,
          failed: count,
          cancelled: count,
          expired: count,
          live: count.meta({ description: 'Runs that had not ended at the end of the interval.' }),
          startP50Ms: milliseconds.nullable(),
          startP95Ms: milliseconds.nullable(),
        }),
      )
      .meta({
        description:
          'The window in 60 equal intervals, oldest first. Start latencies count in the interval in which the Run was created, without Runs that waited while the queue was paused.',
      }),
    startLatency: z
      .strictObject({
        count,
        p50Ms: milliseconds.nullable(),
        p95Ms: milliseconds.nullable(),
        p99Ms: milliseconds.nullable(),
      })
      .meta({
        description:
          'Time from the creation of a Run to its first start, for Runs created within the window, without those that waited while an operator had paused the queue.',
      }),
    failures: z
      .array(z.strictObject({ code: z.string(), count, lastAt: dateTime, lastRunId: answeredUlid }))
      .meta({ description: 'Runs that failed within the window, by error code, most frequent first.' }),
    queue: queueStatus,
    database: z.strictObject({
      version: z.string(),
      latencyMs: milliseconds.meta({ description: 'Latency of one trivial statement.' }),
      connections: count,
      maxConnections: count,
      sizeBytes: count,
    }),
    redis: z
      .strictObject({
        status: z.enum(['ok', 'away']),
        version: z.string().nullable(),
        latencyMs: milliseconds.nullable(),
        usedBytes: count.nullable(),
      })
      .nullable()
      .meta({ description: 'Null if Redis is not used.' }),
  })
  .meta({ description: 'The state of the installation at a glance.' })
  .register(adminComponents, { id: 'Overview' });

export type Overview = z.output<typeof overview>;
export type Problem = z.output<typeof problem>;
