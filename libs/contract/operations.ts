import { z } from 'zod';
import { agentAnswer, listEventsAnswer, listRunsAnswer, runAnswer, sendEventsAnswer, threadAnswer } from './answers.ts';
import { createThreadBody, listEventsQuery, listRunsQuery, sendEventsBody, streamEventsQuery } from './requests.ts';
import { ulid } from './scalars.ts';

/** One operation of the interface: what the API checks before it does anything, and what the OpenAPI document says. */
export interface Operation<
  Params extends z.ZodObject = z.ZodObject,
  Query extends z.ZodObject = z.ZodObject,
  Body extends z.ZodType = z.ZodType,
> {
  method: 'GET' | 'POST' | 'DELETE';
  /** Below {base_url}, parameters in braces. */
  path: `/${string}`;
  summary: string;
  description?: string;
  params: Params;
  query: Query;
  /** Null where no body is taken. */
  body: Body | null;
  takesIdempotencyKey: boolean;
  status: 200 | 201;
  /** Null for the event stream. */
  answer: z.ZodType | null;
}

/** What an operation is given, parsed. */
export interface InputOf<O extends Operation> {
  params: z.output<O['params']>;
  query: z.output<O['query']>;
  body: O extends Operation<z.ZodObject, z.ZodObject, infer Body> ? z.output<Body> : never;
  idempotencyKey: string | null;
}

const agentParams = z.object({ agentId: ulid });
const threadParams = z.object({ threadId: ulid });
const runParams = z.object({ threadId: ulid, runId: ulid });
const nothing = z.object({});
const noBody: z.ZodNull | null = null;

export const operations = {
  createThread: {
    method: 'POST',
    path: '/agents/{agentId}/threads',
    summary: 'Create a Thread, with `input` also its first Run',
    params: agentParams,
    query: nothing,
    body: createThreadBody,
    takesIdempotencyKey: true,
    status: 201,
    answer: threadAnswer,
  },
  getAgent: {
    method: 'GET',
    path: '/agents/{agentId}',
    summary: 'Read what the Agent is, nothing of its configuration',
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
    params: threadParams,
    query: nothing,
    body: noBody,
    takesIdempotencyKey: false,
    status: 200,
    answer: threadAnswer,
  },
  sendEvents: {
    method: 'POST',
    path: '/threads/{threadId}/events',
    summary: 'Apply an ordered batch of events, whole or not at all',
    description:
      'A state that rejects an event is 409 `idempotency_conflict`, and nothing is applied. An interrupt that names a ' +
      'Run which has ended answers with that Run unchanged.',
    params: threadParams,
    query: nothing,
    body: sendEventsBody,
    takesIdempotencyKey: true,
    status: 200,
    answer: sendEventsAnswer,
  },
  listEvents: {
    method: 'GET',
    path: '/threads/{threadId}/events',
    summary: 'Read the public event log, oldest first within the window',
    description: 'Without `after`: the latest entries (before `before`). With it: the first ones after that event.',
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
      'Frames: `thread.event` with the entry’s id as `id` and a ThreadEventLogEntry as `data`; `thread.error` with an ' +
      'Error, then the end; `thread.idle` at the end of `?until=idle`. `Last-Event-ID` resumes strictly after that id.',
    params: threadParams,
    query: streamEventsQuery,
    body: noBody,
    takesIdempotencyKey: false,
    status: 200,
    answer: null,
  },
  listRuns: {
    method: 'GET',
    path: '/threads/{threadId}/runs',
    summary: 'List the Runs of a Thread, newest first',
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
    params: runParams,
    query: nothing,
    body: noBody,
    takesIdempotencyKey: false,
    status: 200,
    answer: runAnswer,
  },
} as const satisfies Record<string, Operation>;
