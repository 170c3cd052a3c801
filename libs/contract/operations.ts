import { z } from 'zod';
import {
  agentAnswer,
  listEventsAnswer,
  listFilesAnswer,
  listRunsAnswer,
  listThreadsAnswer,
  okAnswer,
  publicFileAnswer,
  runAnswer,
  sendEventsAnswer,
  threadAnswer,
  threadFileAnswer,
} from './answers.ts';
import { compatibleCreateThreadBody, compatibleSendEventsBody } from './compatibility.ts';
import {
  attachFileBody,
  createThreadBody,
  listEventsQuery,
  listRunsQuery,
  listThreadsQuery,
  readContentQuery,
  sendEventsBody,
  streamEventsQuery,
  updateThreadBody,
} from './requests.ts';
import { ulid } from './scalars.ts';

/** One operation of the interface: what the API checks before it does anything, and what the OpenAPI document says. */
export interface Operation<
  Params extends z.ZodObject = z.ZodObject,
  Query extends z.ZodObject = z.ZodObject,
  Body extends z.ZodType = z.ZodType,
> {
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** Below {base_url}, parameters in braces. */
  path: `/${string}`;
  summary: string;
  description: string;
  params: Params;
  query: Query;
  /** Null where no body is taken; `upload` is one part named `file` of multipart/form-data. */
  body: Body | 'upload' | null;
  /** Instead of `body` where the older fields are taken too (`COMPATIBILITY_FIELDS=on`). */
  compatibleBody?: z.ZodType;
  takesIdempotencyKey: boolean;
  /** Whether it takes `If-Match` with the ETag of a file. */
  takesIfMatch?: true;
  status: 200 | 201;
  answer: z.ZodType | 'event_stream' | 'bytes';
}

/** What an operation is given, parsed. */
export interface InputOf<O extends Operation> {
  params: z.output<O['params']>;
  query: z.output<O['query']>;
  body: O extends { compatibleBody: infer Body extends z.ZodType }
    ? z.output<Body>
    : O extends Operation<z.ZodObject, z.ZodObject, infer Body>
      ? z.output<Body>
      : never;
  idempotencyKey: string | null;
  /** Whether the answer carries the optional fields beyond the contract (`?extended=true`). */
  extended: boolean;
}

const agentId = ulid.meta({ description: 'Id of the Agent, in either case.' });
const threadId = ulid.meta({ description: 'Id of the Thread, in either case.' });
const runId = ulid.meta({ description: 'Id of a Run of the Thread, in either case.' });
const fileId = ulid.meta({ description: 'Id of the file, in either case.' });
const agentParams = z.object({ agentId });
const threadParams = z.object({ threadId });
const runParams = z.object({ threadId, runId });
const fileParams = z.object({ fileId });
const threadFileParams = z.object({ threadId, fileId });
const nothing = z.object({});
const noBody: z.ZodNull | null = null;

export const operations = {
  createThread: {
    method: 'POST',
    path: '/agents/{agentId}/threads',
    summary: 'Create a Thread, with `input` also its first Run',
    description:
      'With `input` the Run is queued when this answers, and goes on whatever becomes of the connection. Without it the ' +
      'Thread is `IDLE` and `run` is null. `links.thread` is its absolute URL.',
    params: agentParams,
    query: nothing,
    body: createThreadBody,
    compatibleBody: compatibleCreateThreadBody,
    takesIdempotencyKey: true,
    status: 201,
    answer: threadAnswer,
  },
  listThreads: {
    method: 'GET',
    path: '/agents/{agentId}/threads',
    summary: 'List the caller’s Threads of an Agent, the last changed first',
    description:
      'Archived ones only when asked for. A Thread that does not change while one pages is neither skipped nor doubled.',
    params: agentParams,
    query: listThreadsQuery,
    body: noBody,
    takesIdempotencyKey: false,
    status: 200,
    answer: listThreadsAnswer,
  },
  listAllThreads: {
    method: 'GET',
    path: '/threads',
    summary: 'List the caller’s Threads of all Agents, the last changed first',
    description:
      'Only Agents that the token may use now. Filters, pages and answer are those of the list of one Agent.',
    params: nothing,
    query: listThreadsQuery,
    body: noBody,
    takesIdempotencyKey: false,
    status: 200,
    answer: listThreadsAnswer,
  },
  uploadFile: {
    method: 'POST',
    path: '/agents/{agentId}/files',
    summary: 'Upload a draft file, to be given to a Thread later',
    description:
      'A draft belongs to the Agent and to the person, or to the service token itself. One that no Thread has after 24 h is removed.',
    params: agentParams,
    query: nothing,
    body: 'upload',
    takesIdempotencyKey: true,
    status: 201,
    answer: publicFileAnswer,
  },
  getAgent: {
    method: 'GET',
    path: '/agents/{agentId}',
    summary: 'Read what the Agent is, nothing of its configuration',
    description:
      'Answers what every operation on the Agent checks first: whether it is there, may be used, and is published.',
    params: agentParams,
    query: nothing,
    body: noBody,
    takesIdempotencyKey: false,
    status: 200,
    answer: agentAnswer,
  },
  getThread: {
    method: 'GET',
    path: '/threads/{threadId}',
    summary: 'Read a Thread and its most recent Run',
    description: '`run` is the newest one, null when there is none. To wait for its end, follow the event stream.',
    params: threadParams,
    query: nothing,
    body: noBody,
    takesIdempotencyKey: false,
    status: 200,
    answer: threadAnswer,
  },
  updateThread: {
    method: 'PATCH',
    path: '/threads/{threadId}',
    summary: 'Set the title of a Thread',
    description: 'Takes no Idempotency-Key, because a repeat changes nothing. Also works for an archived Thread.',
    params: threadParams,
    query: nothing,
    body: updateThreadBody,
    takesIdempotencyKey: false,
    status: 200,
    answer: threadAnswer,
  },
  deleteThread: {
    method: 'DELETE',
    path: '/threads/{threadId}',
    summary: 'Delete a Thread for good, with its events and files',
    description:
      'Its Runs are cancelled. From then on its id and those of its files answer 404. Its owner may delete it in every state, ' +
      'even while its Agent is unpublished or inactive.',
    params: threadParams,
    query: nothing,
    body: noBody,
    takesIdempotencyKey: false,
    status: 200,
    answer: okAnswer,
  },
  archiveThread: {
    method: 'POST',
    path: '/threads/{threadId}/archive',
    summary: 'Take a Thread out of the active lists',
    description:
      'Refused while a Run is active. An archived Thread takes no events until it is unarchived; archiving it again ' +
      'changes nothing.',
    params: threadParams,
    query: nothing,
    body: noBody,
    takesIdempotencyKey: false,
    status: 200,
    answer: okAnswer,
  },
  unarchiveThread: {
    method: 'POST',
    path: '/threads/{threadId}/unarchive',
    summary: 'Restore an archived Thread to the active lists',
    description: 'A Thread that is not archived stays as it is.',
    params: threadParams,
    query: nothing,
    body: noBody,
    takesIdempotencyKey: false,
    status: 200,
    answer: okAnswer,
  },
  sendEvents: {
    method: 'POST',
    path: '/threads/{threadId}/events',
    summary: 'Apply an ordered batch of events, whole or not at all',
    description:
      'A state that rejects an event is 409 `idempotency_conflict`, and nothing is applied. An interrupt that names a ' +
      'Run which has ended answers with that Run unchanged and a warning.',
    params: threadParams,
    query: nothing,
    body: sendEventsBody,
    compatibleBody: compatibleSendEventsBody,
    takesIdempotencyKey: true,
    status: 200,
    answer: sendEventsAnswer,
  },
  listEvents: {
    method: 'GET',
    path: '/threads/{threadId}/events',
    summary: 'Read the public event log, oldest first within the window',
    description:
      'Without `after`: the latest entries (before `before`). With it: the first ones after that event. A window of large ' +
      'entries ends early, after about 1 MiB, and is `truncated`.',
    params: threadParams,
    query: listEventsQuery,
    body: noBody,
    takesIdempotencyKey: false,
    status: 200,
    answer: listEventsAnswer,
  },
  streamEvents: {
    method: 'GET',
    path: '/threads/{threadId}/events/stream',
    summary: 'Follow the public event log as Server-Sent Events',
    description:
      'The last `limit` entries, and then each as it is stored. A stream that ends, by a deployment or for a reader that is ' +
      'too slow, is opened again with `Last-Event-ID` and goes on strictly after that id: nothing is lost or doubled, at any age.',
    params: threadParams,
    query: streamEventsQuery,
    body: noBody,
    takesIdempotencyKey: false,
    status: 200,
    answer: 'event_stream',
  },
  listRuns: {
    method: 'GET',
    path: '/threads/{threadId}/runs',
    summary: 'List the Runs of a Thread, newest first',
    description: 'Pages neither skip nor double a Run. A page of large final outputs ends early, after about 1 MiB.',
    params: threadParams,
    query: listRunsQuery,
    body: noBody,
    takesIdempotencyKey: false,
    status: 200,
    answer: listRunsAnswer,
  },
  getRun: {
    method: 'GET',
    path: '/threads/{threadId}/runs/{runId}',
    summary: 'Read a Run',
    description: '`finalOutput` is there as soon as the status is `completed`; `error` exactly when it is `failed`.',
    params: runParams,
    query: nothing,
    body: noBody,
    takesIdempotencyKey: false,
    status: 200,
    answer: runAnswer,
  },
  retryRun: {
    method: 'POST',
    path: '/threads/{threadId}/runs/{runId}/retry',
    summary: 'Continue a Run that failed or was ended, by a new Run',
    description:
      'Takes the newest Run: a failed one whose error is retryable (`retry`), or a cancelled or expired one (`resume`). The new Run ' +
      'continues after the last stored step. Completed tool calls keep their results and are not repeated.',
    params: runParams,
    query: nothing,
    body: noBody,
    takesIdempotencyKey: true,
    status: 201,
    answer: runAnswer,
  },
  attachFile: {
    method: 'POST',
    path: '/threads/{threadId}/files',
    summary: 'Attach a file: a draft, or bytes within the request',
    description:
      'It is mounted into the Thread’s next Run. Two shapes: `{fileId}`, or `{name, contentType, contentBase64}`.',
    params: threadParams,
    query: nothing,
    body: attachFileBody,
    takesIdempotencyKey: false,
    status: 201,
    answer: threadFileAnswer,
  },
  listFiles: {
    method: 'GET',
    path: '/threads/{threadId}/files',
    summary: 'List the files of a Thread, oldest first',
    description: 'Attachments and artifacts, all of them.',
    params: threadParams,
    query: nothing,
    body: noBody,
    takesIdempotencyKey: false,
    status: 200,
    answer: listFilesAnswer,
  },
  detachFile: {
    method: 'DELETE',
    path: '/threads/{threadId}/files/{fileId}',
    summary: 'Detach a file of a Thread and delete it',
    description: 'The Runs to come do not have it any more; its bytes are removed.',
    params: threadFileParams,
    query: nothing,
    body: noBody,
    takesIdempotencyKey: false,
    takesIfMatch: true,
    status: 200,
    answer: okAnswer,
  },
  getFile: {
    method: 'GET',
    path: '/files/{fileId}',
    summary: 'Read what a file is',
    description: 'A draft of the caller’s, or a file of a Thread that the caller may see.',
    params: fileParams,
    query: nothing,
    body: noBody,
    takesIdempotencyKey: false,
    status: 200,
    answer: publicFileAnswer,
  },
  deleteFile: {
    method: 'DELETE',
    path: '/files/{fileId}',
    summary: 'Delete a draft, or a file of a Thread',
    description: 'Its bytes are removed. A file of a Thread is detached first.',
    params: fileParams,
    query: nothing,
    body: noBody,
    takesIdempotencyKey: false,
    takesIfMatch: true,
    status: 200,
    answer: okAnswer,
  },
  readContent: {
    method: 'GET',
    path: '/files/{fileId}/content',
    summary: 'Download the bytes of an attachment or artifact',
    description:
      'Always `application/octet-stream` with `X-Content-Type-Options: nosniff`; the detected type is the file’s ' +
      '`mimeType`. Ranges and conditional requests as in RFC 9110, names as in RFC 6266. The bytes of an artifact may change, ' +
      'and its ETag with them. A draft has no content yet: 404.',
    params: fileParams,
    query: readContentQuery,
    body: noBody,
    takesIdempotencyKey: false,
    takesIfMatch: true,
    status: 200,
    answer: 'bytes',
  },
} as const satisfies Record<string, Operation>;
