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

export const problem = z
  .strictObject({
    kind: z.enum([
      'database_slow',
      'queue_away',
      'redis_away',
      'queue_paused',
      'no_worker',
      'lease_over',
      'lost_files',
      'backlog',
      'failed_runs',
      'waiting_runs',
    ]),
    severity: z.enum(['critical', 'warning', 'info']),
    message: z.string().meta({ description: 'What it is, and what to do about it.' }),
    count: count.nullable().meta({ description: 'Of what it is about; null where it is one thing.' }),
    since: dateTime.nullable().meta({ description: 'Of the oldest.' }),
    runs: z
      .array(
        managedRun.pick({ id: true, threadId: true, agentName: true, status: true, error: true, mayBeRetried: true }),
      )
      .meta({ description: 'The oldest 5 that it is about.' }),
  })
  .meta({ description: 'Something that somebody should look at.' })
  .register(adminComponents, { id: 'Problem' });

export const overview = z
  .strictObject({
    at: dateTime,
    windowMinutes: z.int(),
    bucketSeconds: z.int().meta({ description: 'Length of each of `series`.' }),
    problems: z.array(problem).meta({ description: 'The worst first; empty: all is well.' }),
    runs: z.strictObject(runsByStatus).meta({
      description: 'Live Runs by status now, ended ones by how they ended within the window.',
    }),
    series: z
      .array(
        z.strictObject({
          at: dateTime.meta({ description: 'Its beginning.' }),
          created: count,
          completed: count,
          failed: count,
          cancelled: count,
          expired: count,
          live: count.meta({ description: 'Runs that had not ended at its end.' }),
          startP50Ms: milliseconds.nullable(),
          startP95Ms: milliseconds.nullable(),
        }),
      )
      .meta({
        description: 'The window in 60 equal parts, oldest first. Starts count where the Run was created.',
      }),
    startLatency: z
      .strictObject({
        count,
        p50Ms: milliseconds.nullable(),
        p95Ms: milliseconds.nullable(),
        p99Ms: milliseconds.nullable(),
      })
      .meta({ description: 'From a Run’s creation to its first start, of Runs created within the window.' }),
    failures: z
      .array(z.strictObject({ code: z.string(), count, lastAt: dateTime, lastRunId: answeredUlid }))
      .meta({ description: 'Of Runs that failed within the window, by code, the most frequent first.' }),
    queue: queueStatus,
    database: z.strictObject({
      version: z.string(),
      latencyMs: milliseconds.meta({ description: 'Of one trivial statement.' }),
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
      .meta({ description: 'Null where none is used.' }),
  })
  .meta({ description: 'What the person on call looks at first.' })
  .register(adminComponents, { id: 'Overview' });

export type Overview = z.output<typeof overview>;
export type Problem = z.output<typeof problem>;
