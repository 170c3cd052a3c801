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
import { browserTokenAnswer, createBrowserTokenBody, type Verb } from './browser-tokens.ts';
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
  takesIdempotencyKey?: true;
  /** The verb that a browser token needs. `by_event`: each event of the batch has one. Null: no browser token can use it. */
  verb: Verb | 'by_event' | null;
  /** Whether it takes `If-Match` with the ETag of a file. */
  takesIfMatch?: true;
  status: 200 | 201;
  answer: z.ZodType | 'event_stream' | 'bytes';
}

/** The parsed input of an operation. */
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

const agentId = ulid.meta({ description: 'Id of the Agent, in upper or lower case.' });
const threadId = ulid.meta({ description: 'Id of the Thread, in upper or lower case.' });
const runId = ulid.meta({ description: 'Id of a Run of the Thread, in upper or lower case.' });
const fileId = ulid.meta({ description: 'Id of the file, in upper or lower case.' });
const agentParams = z.object({ agentId });
const threadParams = z.object({ threadId });
const runParams = z.object({ threadId, runId });
const fileParams = z.object({ fileId });
const threadFileParams = z.object({ threadId, fileId });
const nothing = z.object({});
const emptyBody: z.ZodNull | null = null;

export const operations = {
  createThread: {
    method: 'POST',
    path: '/agents/{agentId}/threads',
    verb: 'send',
    summary: 'Create a Thread and, with `input`, its first Run',
    description:
      'With `input`, the Run is queued before the response and continues even if the connection closes. Without it, the ' +
      'Thread is `IDLE` and `run` is null. `links.thread` is the absolute URL of the Thread.',
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
    verb: 'read',
    summary: 'List the caller’s Threads of an Agent, most recently changed first',
    description:
      'Includes archived Threads only on request. Paging neither skips nor repeats a Thread that does not change meanwhile.',
    params: agentParams,
    query: listThreadsQuery,
    body: emptyBody,
    status: 200,
    answer: listThreadsAnswer,
  },
  listAllThreads: {
    method: 'GET',
    path: '/threads',
    verb: 'read',
    summary: 'List the caller’s Threads of all Agents, most recently changed first',
    description: 'Only Agents that the token may use now. Filters, pages and response are as in the list of one Agent.',
    params: nothing,
    query: listThreadsQuery,
    body: emptyBody,
    status: 200,
    answer: listThreadsAnswer,
  },
  uploadFile: {
    method: 'POST',
    path: '/agents/{agentId}/files',
    verb: 'upload',
    summary: 'Upload a draft file to attach to a Thread later',
    description:
      'A draft belongs to the Agent and to the person or service token that uploads it. A draft that is not attached within 24 h is removed.',
    params: agentParams,
    query: nothing,
    body: 'upload',
    takesIdempotencyKey: true,
    status: 201,
    answer: publicFileAnswer,
  },
  createBrowserToken: {
    method: 'POST',
    path: '/browser-tokens',
    verb: null,
    summary: 'Create a token for the browser of one user',
    description:
      'Only for service tokens. The token has the rights of the service token within `userId`, `agentId`, `threadId` and `verbs`, ' +
      'until it expires. Threads and drafts of other users return 404. Revoking the service token ends it within 5 s.',
    params: nothing,
    query: nothing,
    body: createBrowserTokenBody,
    status: 201,
    answer: browserTokenAnswer,
  },
  getAgent: {
    method: 'GET',
    path: '/agents/{agentId}',
    verb: 'read',
    summary: 'Read an Agent',
    description:
      'Succeeds if the Agent exists, the caller may use it, and it is published. Does not return its configuration.',
    params: agentParams,
    query: nothing,
    body: emptyBody,
    status: 200,
    answer: agentAnswer,
  },
  getThread: {
    method: 'GET',
    path: '/threads/{threadId}',
    verb: 'read',
    summary: 'Read a Thread and its most recent Run',
    description: '`run` is the newest Run, or null. To wait for its end, follow the event stream.',
    params: threadParams,
    query: nothing,
    body: emptyBody,
    status: 200,
    answer: threadAnswer,
  },
  updateThread: {
    method: 'PATCH',
    path: '/threads/{threadId}',
    verb: 'manage',
    summary: 'Set the title of a Thread',
    description: 'Takes no Idempotency-Key, because a repeat changes nothing. Also works for an archived Thread.',
    params: threadParams,
    query: nothing,
    body: updateThreadBody,
    status: 200,
    answer: threadAnswer,
  },
  deleteThread: {
    method: 'DELETE',
    path: '/threads/{threadId}',
    verb: 'manage',
    summary: 'Permanently delete a Thread with its events and files',
    description:
      'Cancels its Runs. Afterwards, its id and the ids of its files return 404. Its owner can delete it in every state, ' +
      'even while its Agent is unpublished or inactive.',
    params: threadParams,
    query: nothing,
    body: emptyBody,
    status: 200,
    answer: okAnswer,
  },
  archiveThread: {
    method: 'POST',
    path: '/threads/{threadId}/archive',
    verb: 'manage',
    summary: 'Archive a Thread',
    description:
      'Rejected while a Run is active. An archived Thread is not listed by default and accepts no events until it is ' +
      'unarchived. Archiving it again changes nothing.',
    params: threadParams,
    query: nothing,
    body: emptyBody,
    status: 200,
    answer: okAnswer,
  },
  unarchiveThread: {
    method: 'POST',
    path: '/threads/{threadId}/unarchive',
    verb: 'manage',
    summary: 'Unarchive a Thread',
    description: 'A Thread that is not archived is not changed.',
    params: threadParams,
    query: nothing,
    body: emptyBody,
    status: 200,
    answer: okAnswer,
  },
  sendEvents: {
    method: 'POST',
    path: '/threads/{threadId}/events',
    verb: 'by_event',
    summary: 'Apply an ordered batch of events, all or none',
    description:
      'If the state of the Thread rejects an event, returns 409 `idempotency_conflict` and applies nothing. An interrupt of a ' +
      'Run that has ended returns that Run unchanged, with a warning.',
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
    verb: 'read',
    summary: 'Read the public event log, oldest first within the window',
    description:
      'Without `after`, returns the latest entries (before `before`). With `after`, returns the first entries after that event. ' +
      'A window of large entries ends after about 1 MiB and is `truncated`.',
    params: threadParams,
    query: listEventsQuery,
    body: emptyBody,
    status: 200,
    answer: listEventsAnswer,
  },
  streamEvents: {
    method: 'GET',
    path: '/threads/{threadId}/events/stream',
    verb: 'read',
    summary: 'Follow the public event log as Server-Sent Events',
    description:
      'Sends the last `limit` entries, then each new entry when it is stored. If a stream ends, because of a deployment or a slow ' +
      'reader, reopen it with `Last-Event-ID`. It continues after that id and neither loses nor repeats an entry, however old the id is.',
    params: threadParams,
    query: streamEventsQuery,
    body: emptyBody,
    status: 200,
    answer: 'event_stream',
  },
  listRuns: {
    method: 'GET',
    path: '/threads/{threadId}/runs',
    verb: 'read',
    summary: 'List the Runs of a Thread, newest first',
    description: 'Paging neither skips nor repeats a Run. A page of large final outputs ends after about 1 MiB.',
    params: threadParams,
    query: listRunsQuery,
    body: emptyBody,
    status: 200,
    answer: listRunsAnswer,
  },
  getRun: {
    method: 'GET',
    path: '/threads/{threadId}/runs/{runId}',
    verb: 'read',
    summary: 'Read a Run',
    description: '`finalOutput` is set when the status is `completed`; `error` is set exactly when it is `failed`.',
    params: runParams,
    query: nothing,
    body: emptyBody,
    status: 200,
    answer: runAnswer,
  },
  retryRun: {
    method: 'POST',
    path: '/threads/{threadId}/runs/{runId}/retry',
    verb: 'send',
    summary: 'Continue a failed, cancelled or expired Run in a new Run',
    description:
      'Accepts only the newest Run: failed with a retryable error (`retry`), or cancelled or expired (`resume`). The new Run ' +
      'continues after the last stored step. Completed tool calls keep their results and are not repeated.',
    params: runParams,
    query: nothing,
    body: emptyBody,
    takesIdempotencyKey: true,
    status: 201,
    answer: runAnswer,
  },
  attachFile: {
    method: 'POST',
    path: '/threads/{threadId}/files',
    verb: 'upload',
    summary: 'Attach a draft, or bytes in the request, to a Thread',
    description: 'The Thread’s next Run can read it. The body is `{fileId}` or `{name, contentType, contentBase64}`.',
    params: threadParams,
    query: nothing,
    body: attachFileBody,
    status: 201,
    answer: threadFileAnswer,
  },
  listFiles: {
    method: 'GET',
    path: '/threads/{threadId}/files',
    verb: 'read',
    summary: 'List the files of a Thread, oldest first',
    description: 'Returns all attachments and artifacts.',
    params: threadParams,
    query: nothing,
    body: emptyBody,
    status: 200,
    answer: listFilesAnswer,
  },
  detachFile: {
    method: 'DELETE',
    path: '/threads/{threadId}/files/{fileId}',
    verb: 'manage',
    summary: 'Detach a file from a Thread and delete it',
    description: 'Later Runs cannot read it; its bytes are removed.',
    params: threadFileParams,
    query: nothing,
    body: emptyBody,
    takesIfMatch: true,
    status: 200,
    answer: okAnswer,
  },
  getFile: {
    method: 'GET',
    path: '/files/{fileId}',
    verb: 'read',
    summary: 'Read the metadata of a file',
    description: 'The file is a draft of the caller, or belongs to a Thread that the caller may see.',
    params: fileParams,
    query: nothing,
    body: emptyBody,
    status: 200,
    answer: publicFileAnswer,
  },
  deleteFile: {
    method: 'DELETE',
    path: '/files/{fileId}',
    verb: 'manage',
    summary: 'Delete a draft, or a file of a Thread',
    description: 'Removes its bytes. A file of a Thread is detached first.',
    params: fileParams,
    query: nothing,
    body: emptyBody,
    takesIfMatch: true,
    status: 200,
    answer: okAnswer,
  },
  readContent: {
    method: 'GET',
    path: '/files/{fileId}/content',
    verb: 'read',
    summary: 'Download the bytes of an attachment or artifact',
    description:
      'Always `application/octet-stream` with `X-Content-Type-Options: nosniff`; the detected type is the file’s ' +
      '`mimeType`. Supports ranges and conditional requests (RFC 9110) and names as in RFC 6266. The bytes of an artifact, and ' +
      'with them its ETag, can change. A draft has no content yet and returns 404.',
    params: fileParams,
    query: readContentQuery,
    body: emptyBody,
    takesIfMatch: true,
    status: 200,
    answer: 'bytes',
  },
} as const satisfies Record<string, Operation>;
