import { z } from 'zod';
import { flag, count, newName, nextCursor, emptyBody, nothing, page, time } from './parts.ts';
import { queryInteger, ulid } from '../scalars.ts';
import { overview } from './overview-records.ts';
import type { AdminOperation } from './operation.ts';
import { auditEntry, doctorCheck, queueStatus } from './records.ts';

const fileFinding = z.strictObject({
  fileId: z.string(),
  threadId: z.string().nullable().meta({ description: 'Null for a draft.' }),
  problem: z
    .enum(['missing', 'size', 'hash', 'unreadable'])
    .meta({ description: '`unreadable`: the storage failed, so the state of the file is unknown.' }),
  message: z.string(),
});

const finding = z.strictObject({
  threadId: z.string().meta({ description: 'Empty if the finding concerns no Thread.' }),
  invariant: z.string(),
  message: z.string(),
});

/** The queue, and the installation as a whole. */
export const serviceOperations = {
  getOverview: {
    method: 'GET',
    path: '/overview',
    summary: 'Read the state of the installation and its problems',
    description: 'Returns problems, worst first, and statistics of the last `windowMinutes` minutes.',
    params: nothing,
    query: z.object({
      windowMinutes: queryInteger(5, 10_080).default(60).meta({ description: 'Length of the window in minutes.' }),
    }),
    body: emptyBody,
    status: 200,
    answer: z.strictObject({ overview }),
    form: 'json',
  },
  getQueue: {
    method: 'GET',
    path: '/queue',
    summary: 'Read the state of the queue and the workers',
    description: 'Returns waiting jobs, live Runs by state, and the live workers.',
    params: nothing,
    query: nothing,
    body: emptyBody,
    status: 200,
    answer: z.strictObject({ queue: queueStatus }),
    form: 'json',
  },
  pauseQueue: {
    method: 'POST',
    path: '/queue/pause',
    summary: 'Pause the queue: no Run starts; active Runs continue',
    description: 'Messages are still accepted. The queue time limit of Runs is suspended.',
    params: nothing,
    query: nothing,
    body: emptyBody,
    status: 200,
    answer: z.strictObject({ queue: queueStatus }),
    form: 'json',
  },
  resumeQueue: {
    method: 'POST',
    path: '/queue/resume',
    summary: 'Resume the queue',
    description: 'Ends a pause by an operator or by a BullMQ tool. Has no effect on a queue that is not paused.',
    params: nothing,
    query: nothing,
    body: emptyBody,
    status: 200,
    answer: z.strictObject({ queue: queueStatus }),
    form: 'json',
  },
  verify: {
    method: 'POST',
    path: '/verify',
    summary: 'Check every invariant of every stream, online',
    description:
      'Returns lines of progress and a last line with `done`. Changes nothing. Closing the connection stops it. 409 if another verification is active in the process.',
    params: nothing,
    query: nothing,
    body: z.strictObject({ from: ulid.optional().meta({ description: 'Only Threads after this one.' }) }).prefault({}),
    status: 200,
    answer: z.strictObject({
      done: z.boolean(),
      streams: count,
      events: count,
      found: count,
      unknownEvents: count,
      byInvariant: z.record(z.string(), count),
      findings: z.array(finding).meta({ description: 'Empty before the last line; at most 100.' }),
      lastThreadId: z.string().nullable(),
    }),
    form: 'lines',
  },
  verifyFiles: {
    method: 'POST',
    path: '/files/verify',
    summary: 'Compare every file with its bytes in the blob store, online',
    description:
      'Returns lines of progress and a last line with `done`. Records which files have lost their bytes, for the overview. Closing the connection stops it; `from` continues. 409 if another one is active in the process.',
    params: nothing,
    query: nothing,
    body: z
      .strictObject({
        from: ulid.optional().meta({ description: 'Only files after this one.' }),
        hash: z
          .boolean()
          .default(false)
          .meta({ description: 'Whether to read all bytes and compare their SHA-256, not only the size.' }),
      })
      .prefault({}),
    status: 200,
    answer: z.strictObject({
      done: z.boolean(),
      files: count,
      bytes: count,
      found: count,
      byProblem: z.record(z.string(), count),
      findings: z.array(fileFinding).meta({ description: 'Empty before the last line; at most 100.' }),
      lastFileId: z.string().nullable(),
    }),
    form: 'lines',
  },
  rebuildProjections: {
    method: 'POST',
    path: '/projections/rebuild',
    summary: 'Rebuild every summary from its stream, online, and repair differences',
    description:
      'Returns lines of progress and a last line with `done`. Closing the connection stops it; `from` continues. 409 if another one is active in the process.',
    params: nothing,
    query: nothing,
    body: z.strictObject({ from: ulid.optional().meta({ description: 'Only Threads after this one.' }) }).prefault({}),
    status: 200,
    answer: z.strictObject({
      done: z.boolean(),
      streams: count,
      events: count,
      differences: count.meta({ description: 'Rows that differed from their stream and were repaired.' }),
      byTable: z.record(z.string(), count),
      left: count.meta({
        description: 'Threads that were not changed, because this release does not know all their events.',
      }),
      leftThreadIds: z.array(z.string()),
      lastThreadId: z.string().nullable(),
    }),
    form: 'lines',
  },
  runDoctor: {
    method: 'GET',
    path: '/doctor',
    summary: 'Check the dependencies of this API process: database, queue, clock, disk, versions',
    description: 'Each check has a status and a message that says what to do.',
    params: nothing,
    query: nothing,
    body: emptyBody,
    status: 200,
    answer: z.strictObject({ checks: z.array(doctorCheck) }),
    form: 'json',
  },
  listAudit: {
    method: 'GET',
    path: '/audit',
    summary: 'List what operators have changed, newest first',
    description: 'Entries are never changed or removed.',
    params: nothing,
    query: z.object({
      ...page,
      actorId: newName.optional().meta({ description: 'Only changes by this actor.' }),
      action: newName.optional().meta({ description: 'The exact action, or its part before a dot, such as `token`.' }),
      targetId: newName.optional().meta({ description: 'Only changes to this target.' }),
      organizationId: ulid.optional(),
      since: time.optional().meta({ description: 'Only entries at or after this time.' }),
      sessions: flag.meta({ description: '`false`: without sign-ins and sign-outs of the console (`session.…`).' }),
    }),
    body: emptyBody,
    status: 200,
    answer: z.strictObject({ entries: z.array(auditEntry), nextCursor }),
    form: 'json',
  },
} as const satisfies Record<string, AdminOperation>;
