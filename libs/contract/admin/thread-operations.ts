import { z } from 'zod';
import { queryInteger, dateTime, ulid } from '../scalars.ts';
import { threadEventLogEntry } from '../log-entries.ts';
import type { AdminOperation } from './operation.ts';
import { ADMIN_LIMITS, count, flag, newName, nextCursor, emptyBody, nothing, ok, page } from './parts.ts';
import { liveProblem } from './overview-records.ts';
import { managedRun, managedThread } from './records.ts';
import { runFilter } from './run-filter.ts';
import { managedFile, runTimeline, waitingRun } from './thread-records.ts';

const threadParams = z.object({ threadId: ulid });
const runParams = z.object({ runId: ulid });
/** The answer is not JSON. The handler (libs/admin) returns the file, and the caller gets its bytes. */
const fileContent = z.never();
/** An event as the store has it: also what callers never see, such as tool results. */
const storedEvent = z.strictObject({
  threadId: z.string(),
  version: z.int().min(1),
  id: z.string(),
  type: z.string(),
  schemaVersion: z.int(),
  data: z.unknown(),
  runId: z.string().nullable(),
  attempt: z.int().nullable(),
  public: z.boolean(),
  occurredAt: dateTime,
});

/** Threads and Runs of everybody. */
export const threadOperations = {
  listThreads: {
    method: 'GET',
    path: '/threads',
    summary: 'List Threads, newest first',
    description: 'Threads of all organizations, unless a filter names one.',
    params: nothing,
    query: z.object({
      ...page,
      organizationId: ulid.optional(),
      agentId: ulid.optional(),
      ownerPersonId: ulid.optional(),
      ownerTokenId: ulid.optional(),
      userId: newName.optional().meta({ description: 'Only Threads of this user of the application.' }),
      externalRef: newName.optional().meta({ description: 'Only Threads with this reference.' }),
      search: newName.optional().meta({
        description:
          'The id of a Thread or of one of its Runs, a user id, a reference, or a part of the title of one of the newest 100,000 Threads.',
      }),
      status: managedThread.shape.status.optional().meta({ description: 'Only Threads with this status.' }),
      archived: flag.meta({
        description: '`true`: only archived Threads. `false`: only Threads that are not archived.',
      }),
    }),
    body: emptyBody,
    status: 200,
    answer: z.strictObject({ threads: z.array(managedThread), nextCursor }),
    form: 'json',
  },
  getThread: {
    method: 'GET',
    path: '/threads/{threadId}',
    summary: 'Read a Thread and its newest Runs',
    description: '404 if the Thread is deleted.',
    params: threadParams,
    query: nothing,
    body: emptyBody,
    status: 200,
    answer: z.strictObject({
      thread: managedThread,
      events: count.meta({ description: 'Number of events in its stream.' }),
      runs: z.array(managedRun).meta({ description: 'The newest 20, newest first.' }),
    }),
    form: 'json',
  },
  exportThread: {
    method: 'GET',
    path: '/threads/{threadId}/export',
    summary: 'Export all stored events of a Thread',
    description: 'One line for each event, oldest first; includes events that callers never see, such as tool results.',
    params: threadParams,
    query: nothing,
    body: emptyBody,
    status: 200,
    answer: storedEvent,
    form: 'lines',
  },
  tailThread: {
    method: 'GET',
    path: '/threads/{threadId}/tail',
    summary: 'Follow the public log of a Thread',
    description:
      'Entries have their optional fields. Ends when the Thread is deleted. With `until=idle`, also ends when no Run is active and all entries are sent.',
    params: threadParams,
    query: z.object({
      after: ulid.optional().meta({ description: 'Starts after this entry; by default with the latest 20.' }),
      until: z.literal('idle').optional().meta({ description: 'Ends when no Run is active.' }),
    }),
    body: emptyBody,
    status: 200,
    answer: threadEventLogEntry,
    form: 'lines',
  },
  terminateThread: {
    method: 'POST',
    path: '/threads/{threadId}/terminate',
    summary: 'Permanently end a Thread; it stays readable',
    description: 'Cancels its Runs. A Thread that has ended is not changed.',
    params: threadParams,
    query: nothing,
    body: emptyBody,
    status: 200,
    answer: z.strictObject({ thread: managedThread }),
    form: 'json',
  },
  deleteThread: {
    method: 'DELETE',
    path: '/threads/{threadId}',
    summary: 'Permanently delete a Thread with its events and files',
    description: 'Cancels its Runs. Afterwards, its id and the ids of its files return 404.',
    params: threadParams,
    query: nothing,
    body: emptyBody,
    status: 200,
    answer: ok,
    form: 'json',
  },
  listRuns: {
    method: 'GET',
    path: '/runs',
    summary: 'List Runs, newest first: live Runs, the Runs of a Thread, or all',
    description: 'Returns live Runs by default; with `scope=all` or `threadId`, also Runs that have ended.',
    params: nothing,
    query: z.object({
      ...page,
      scope: z.enum(['live', 'all']).default('live').meta({
        description: '`live`: only Runs that have not ended. With `threadId` it is always `all`.',
      }),
      threadId: ulid.optional().meta({ description: 'Only Runs of this Thread, including those that have ended.' }),
      ...runFilter,
      mayBeRetried: flag.meta({ description: '`true`: only Runs that retryRun accepts. `false`: only others.' }),
      problem: liveProblem.optional().meta({
        description:
          'Only live Runs that the overview counts in problems of this kind; with `provider_failing`, `cause` is the cause of the problem.',
      }),
    }),
    body: emptyBody,
    status: 200,
    answer: z.strictObject({ runs: z.array(managedRun), nextCursor }),
    form: 'json',
  },
  suggestFilterValues: {
    method: 'GET',
    path: '/filter-values',
    summary: 'Suggest values for a filter of Runs or Threads',
    description:
      'At most 20 values. Error codes and causes contain the text. User ids and references begin with it, in upper or lower case; ' +
      'those of the newest 100,000 Threads are found, the last used first.',
    params: nothing,
    query: z.object({
      of: z.enum(['errorCode', 'cause', 'userId', 'externalRef']).meta({ description: 'The filter.' }),
      text: newName.optional().meta({ description: 'What is typed.' }),
    }),
    body: emptyBody,
    status: 200,
    answer: z.strictObject({ values: z.array(z.string()) }),
    form: 'json',
  },
  getRun: {
    method: 'GET',
    path: '/runs/{runId}',
    summary: 'Read a Run',
    description: 'If the Run has not ended, `work` has its state, its worker and the time of its next step.',
    params: runParams,
    query: nothing,
    body: emptyBody,
    status: 200,
    answer: z.strictObject({ run: managedRun }),
    form: 'json',
  },
  cancelRun: {
    method: 'POST',
    path: '/runs/{runId}/cancel',
    summary: 'Cancel a Run; 409 if it has ended',
    description: 'The Run is cancelled before the response is sent; its worker stops soon after.',
    params: runParams,
    query: nothing,
    body: emptyBody,
    status: 200,
    answer: z.strictObject({ run: managedRun }),
    form: 'json',
  },
  retryRun: {
    method: 'POST',
    path: '/runs/{runId}/retry',
    summary: 'Continue a failed, cancelled or expired Run in a new Run',
    description:
      'Accepts only the Thread’s newest Run. Unlike callers, operators can retry any failed Run, once they have removed its cause. ' +
      'Completed tool calls are not repeated.',
    params: runParams,
    query: nothing,
    body: emptyBody,
    status: 201,
    answer: z.strictObject({ run: managedRun }),
    form: 'json',
  },
  archiveThread: {
    method: 'POST',
    path: '/threads/{threadId}/archive',
    summary: 'Archive a Thread',
    description: '409 if a Run of it is active, or if the Thread has ended. An archived Thread is not changed.',
    params: threadParams,
    query: nothing,
    body: emptyBody,
    status: 200,
    answer: z.strictObject({ thread: managedThread }),
    form: 'json',
  },
  unarchiveThread: {
    method: 'POST',
    path: '/threads/{threadId}/unarchive',
    summary: 'Unarchive a Thread',
    description: 'Has no effect on a Thread that is not archived.',
    params: threadParams,
    query: nothing,
    body: emptyBody,
    status: 200,
    answer: z.strictObject({ thread: managedThread }),
    form: 'json',
  },
  listThreadEvents: {
    method: 'GET',
    path: '/threads/{threadId}/events',
    summary: 'Read the stored events of a Thread, newest first',
    description: 'Includes events that callers never see, such as tool results. A page holds about 2 MB at most.',
    params: threadParams,
    query: z.object({
      limit: page.limit,
      before: queryInteger(1, ADMIN_LIMITS.version)
        .optional()
        .meta({ description: 'Only events before this version: `nextBefore` of the previous page.' }),
    }),
    body: emptyBody,
    status: 200,
    answer: z.strictObject({
      events: z.array(storedEvent),
      nextBefore: z.int().nullable().meta({ description: 'Null at the end.' }),
    }),
    form: 'json',
  },
  listThreadFiles: {
    method: 'GET',
    path: '/threads/{threadId}/files',
    summary: 'List the attachments and artifacts of a Thread, newest first',
    description: 'Includes the files in the folder of its Agent.',
    params: threadParams,
    query: z.object(page),
    body: emptyBody,
    status: 200,
    answer: z.strictObject({ files: z.array(managedFile), nextCursor }),
    form: 'json',
  },
  downloadFile: {
    method: 'GET',
    path: '/files/{fileId}/content',
    summary: 'Read the bytes of a file of a Thread',
    description:
      '`Content-Disposition` has its name. Supports `Range` (206) and `If-None-Match` (304). 416: the range is outside the file.',
    params: z.object({ fileId: ulid }),
    query: nothing,
    body: emptyBody,
    status: 200,
    answer: fileContent,
    form: 'bytes',
  },
  listConfirmations: {
    method: 'GET',
    path: '/confirmations',
    summary: 'List the Runs that wait for a person, newest first, with their requests',
    description:
      'Omits requests that are already answered. A page holds about 2 MB at most, so it can have fewer Runs than `limit`.',
    params: nothing,
    query: z.object({
      ...page,
      threadId: ulid.optional(),
      organizationId: ulid.optional(),
      agentId: ulid.optional(),
    }),
    body: emptyBody,
    status: 200,
    answer: z.strictObject({ waiting: z.array(waitingRun), nextCursor }),
    form: 'json',
  },
  answerConfirmation: {
    method: 'POST',
    path: '/threads/{threadId}/confirmations/{requestId}',
    summary: 'Answer a confirmation request of a Run as an operator',
    description: '409 if it was already answered, or its Run has ended.',
    params: z.object({ threadId: ulid, requestId: ulid }),
    query: nothing,
    body: z.strictObject({ decision: z.enum(['allow_once', 'reject_once']) }),
    status: 200,
    answer: z.strictObject({ run: managedRun }),
    form: 'json',
  },
  getRunTimeline: {
    method: 'GET',
    path: '/runs/{runId}/timeline',
    summary: 'Read the timeline and token usage of a Run',
    description: 'Computed from its stored events; for a live Run, up to now.',
    params: runParams,
    query: nothing,
    body: emptyBody,
    status: 200,
    answer: z.strictObject({ run: managedRun, timeline: runTimeline }),
    form: 'json',
  },
  listRunEvents: {
    method: 'GET',
    path: '/runs/{runId}/events',
    summary: 'Read the stored events of a Run with its content, oldest first',
    description:
      'Includes its message, the messages of the model, tool calls with inputs and results, decisions of people, ' +
      'changes of files, starts, failed attempts and its end. A Run that retries another one has no message; ' +
      'the events of the Thread have it. A page holds about 2 MB at most.',
    params: runParams,
    query: z.object({
      limit: page.limit,
      afterVersion: queryInteger(0, ADMIN_LIMITS.version)
        .default(0)
        .meta({ description: 'Only events after this version: `nextAfterVersion` of the previous page.' }),
    }),
    body: emptyBody,
    status: 200,
    answer: z.strictObject({
      events: z.array(storedEvent),
      nextAfterVersion: z.int().nullable().meta({ description: 'Null at the end.' }),
    }),
    form: 'json',
  },
} as const satisfies Record<string, AdminOperation>;
