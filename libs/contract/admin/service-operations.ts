import { z } from 'zod';
import { count, newName, nextCursor, noBody, nothing, page, time } from './parts.ts';
import { queryInteger, ulid } from '../scalars.ts';
import { overview } from './overview-records.ts';
import type { AdminOperation } from './operation.ts';
import { auditEntry, doctorCheck, queueStatus } from './records.ts';

const fileFinding = z.strictObject({
  fileId: z.string(),
  threadId: z.string().nullable().meta({ description: 'Null for a draft.' }),
  problem: z
    .enum(['missing', 'size', 'hash', 'unreadable'])
    .meta({ description: '`unreadable`: the storage failed for it, so that nothing is known.' }),
  message: z.string(),
});

const finding = z.strictObject({
  threadId: z.string().meta({ description: 'Empty where it is about no Thread.' }),
  invariant: z.string(),
  message: z.string(),
});

/** The queue, and the installation as a whole. */
export const serviceOperations = {
  getOverview: {
    method: 'GET',
    path: '/overview',
    summary: 'Read how the installation is, and what is wrong',
    description: 'Problems, the worst first, and figures of the last `windowMinutes` minutes.',
    params: nothing,
    query: z.object({
      windowMinutes: queryInteger(5, 10_080).default(60).meta({ description: 'How far it looks back.' }),
    }),
    body: noBody,
    status: 200,
    answer: z.strictObject({ overview }),
    form: 'json',
  },
  getQueue: {
    method: 'GET',
    path: '/queue',
    summary: 'Read how the queue and the workers are',
    description: 'Waiting jobs, live Runs by state, and the workers that are alive.',
    params: nothing,
    query: nothing,
    body: noBody,
    status: 200,
    answer: z.strictObject({ queue: queueStatus }),
    form: 'json',
  },
  pauseQueue: {
    method: 'POST',
    path: '/queue/pause',
    summary: 'Have no Run begin; what has begun goes on',
    description: 'Messages are still accepted, and the queue time of Runs stands still.',
    params: nothing,
    query: nothing,
    body: noBody,
    status: 200,
    answer: z.strictObject({ queue: queueStatus }),
    form: 'json',
  },
  resumeQueue: {
    method: 'POST',
    path: '/queue/resume',
    summary: 'Let Runs begin again',
    description:
      'Ends the pause of an operator and that of a BullMQ tool. Has no effect on a queue that is not paused.',
    params: nothing,
    query: nothing,
    body: noBody,
    status: 200,
    answer: z.strictObject({ queue: queueStatus }),
    form: 'json',
  },
  verify: {
    method: 'POST',
    path: '/verify',
    summary: 'Check every invariant of every stream, also while appends go on',
    description:
      'Lines of progress, and last one with `done`. Changes nothing. Hanging up stops it. 409 while another one is under way in the process.',
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
    summary: 'Compare every file with its bytes in the blob store, also while files come and go',
    description:
      'Lines of progress, and last one with `done`. Notes which files have lost their bytes, for the overview. Hanging up stops it; `from` goes on. 409 while another one is under way in the process.',
    params: nothing,
    query: nothing,
    body: z
      .strictObject({
        from: ulid.optional().meta({ description: 'Only files after this one.' }),
        hash: z
          .boolean()
          .default(false)
          .meta({ description: 'Whether all bytes are read and their SHA-256 compared, not only the size.' }),
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
    summary: 'Fold every summary anew from its stream, online, and mend what differs',
    description:
      'Lines of progress, and last one with `done`. Hanging up stops it; `from` goes on. 409 while another one is under way in the process.',
    params: nothing,
    query: nothing,
    body: z.strictObject({ from: ulid.optional().meta({ description: 'Only Threads after this one.' }) }).prefault({}),
    status: 200,
    answer: z.strictObject({
      done: z.boolean(),
      streams: count,
      events: count,
      differences: count.meta({ description: 'Rows that were not what their stream says, and now are.' }),
      byTable: z.record(z.string(), count),
      left: count.meta({ description: 'Threads left as they are: this release does not understand all their events.' }),
      leftThreadIds: z.array(z.string()),
      lastThreadId: z.string().nullable(),
    }),
    form: 'lines',
  },
  runDoctor: {
    method: 'GET',
    path: '/doctor',
    summary: 'Check what the process that answers stands on: database, queue, clock, disk, versions',
    description: 'Each check has a status and a message that says what to do.',
    params: nothing,
    query: nothing,
    body: noBody,
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
      actorId: newName.optional().meta({ description: 'Only what this one has changed.' }),
      action: newName.optional().meta({ description: 'Exactly, or what it begins with, such as `token`.' }),
      targetId: newName.optional().meta({ description: 'Only changes of this.' }),
      organizationId: ulid.optional(),
      since: time.optional().meta({ description: 'Only entries of this time and later.' }),
    }),
    body: noBody,
    status: 200,
    answer: z.strictObject({ entries: z.array(auditEntry), nextCursor }),
    form: 'json',
  },
} as const satisfies Record<string, AdminOperation>;
