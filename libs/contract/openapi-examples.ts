import type { z } from 'zod';
import type { ListMessagesAnswer } from './answers.ts';
import type { ErrorCode } from './errors.ts';
import type { ThreadEventLogEntry } from './log-entries.ts';
import type { operations } from './operations.ts';
import type { RunSummary, ThreadFile, ThreadSummary } from './records.ts';
import { preamble, KEEPALIVE, THREAD_IDLE_FRAME, threadEventFrame } from './sse.ts';

/** An example of the OpenAPI document. All show one Thread, from its creation to the end of its Run. A test checks them by their schemas. */
export interface Example<T> {
  summary: string;
  value: T;
}

type Operations = typeof operations;

/** At least one example of each operation with a JSON body, or with a JSON answer. */
type ExamplesOf<Part extends 'body' | 'answer'> = {
  [Name in keyof Operations as Operations[Name][Part] extends z.ZodType ? Name : never]: Record<
    string,
    Example<Operations[Name][Part] extends infer Schema extends z.ZodType ? z.input<Schema> : never>
  >;
};

export const EXAMPLE_IDS = {
  agentId: '01KAJ0T6SGX4Z8VJ3N5Q7R9T1W',
  threadId: '01KAJ2M5E7B9D1F3H5K7M9P1R3',
  runId: '01KAJ2M5E8C0E2G4J6M8P0R2T4',
  fileId: '01KAJ2KZQ3A5C7E9G1J3M5P7R9',
} as const;
const { agentId, threadId, runId, fileId } = EXAMPLE_IDS;
const PERMISSION_REQUEST = '01KAJ2M8Z1N3Q5S7V9X1Z3B5D7';

const thread: ThreadSummary = {
  id: threadId,
  agent_id: agentId,
  userId: 'customer-4711',
  kind: 'cattle',
  source: 'api',
  status: 'RUNNING',
  title: 'Where is my order 1042?',
  last_run_id: runId,
  created_at: '2026-11-21T09:30:00.123Z',
  updated_at: '2026-11-21T09:30:00.123Z',
};

const idle: ThreadSummary = { ...thread, status: 'IDLE', updated_at: '2026-11-21T09:30:04.910Z' };

const empty: ThreadSummary = { ...thread, status: 'IDLE', title: null, last_run_id: null };

const links = { thread: `https://spool.example/api/v1/threads/${threadId}` };

const queued: RunSummary = {
  id: runId,
  status: 'queued',
  trigger: 'user_prompt',
  createdAt: '2026-11-21T09:30:00.123Z',
  startedAt: null,
  completedAt: null,
  updatedAt: '2026-11-21T09:30:00.123Z',
  error: null,
  finalOutput: null,
};

const completed: RunSummary = {
  ...queued,
  status: 'completed',
  startedAt: '2026-11-21T09:30:00.180Z',
  completedAt: '2026-11-21T09:30:04.910Z',
  updatedAt: '2026-11-21T09:30:04.910Z',
  finalOutput: { text: 'Your order 1042 left our warehouse this morning.', warnings: [] },
};

const failed: RunSummary = {
  ...completed,
  status: 'failed',
  error: { code: 'provider_unavailable', message: 'The model provider did not answer.', retryable: true },
  finalOutput: null,
};

const cancelled: RunSummary = { ...completed, status: 'cancelled', finalOutput: null };

const publicFile = {
  id: fileId,
  name: 'invoice.pdf',
  mimeType: 'application/pdf',
  size: 48_213,
  createdAt: '2026-11-21T09:29:41.007Z',
};

const threadFile: ThreadFile = { ...publicFile, kind: 'attachment', committed: true };

const nowhere = { runId, status: 'available', durationMs: null, tokens: null } as const;

const message: ThreadEventLogEntry = {
  ...nowhere,
  id: '01KAJ2M5EB7D9F1H3K5M7P9R1T',
  type: 'user.message',
  occurredAt: '2026-11-21T09:30:00.123Z',
  content: 'Where is my order 1042?',
};

const confirmation: ThreadEventLogEntry = {
  ...nowhere,
  id: '01KAJ2M6Z5X7Z9B1D3F5H7K9M1',
  type: 'tool.confirmation.required',
  occurredAt: '2026-11-21T09:30:01.701Z',
  content: PERMISSION_REQUEST,
  toolCallId: 'call_7f3a',
  toolName: 'look_up_order',
  toolInput: { order: 1042 },
};

const piece: ThreadEventLogEntry = {
  ...nowhere,
  id: '01KAJ2M9R3T5W7Y9A1C3E5G7J9',
  type: 'agent.message.delta',
  occurredAt: '2026-11-21T09:30:04.512Z',
  content: 'Your order 1042 left our ware',
};

const ended: ThreadEventLogEntry = {
  ...nowhere,
  id: '01KAJ2MA4Y6A8C0E2G4J6M8P0R',
  type: 'run.completed',
  occurredAt: '2026-11-21T09:30:04.910Z',
  content: runId,
  durationMs: 4_730,
};

const question: ListMessagesAnswer['messages'][number] = {
  ...{ id: message.id, role: 'user', runId, createdAt: message.occurredAt },
  parts: [{ type: 'text', text: message.content, state: 'done' }],
};

const answer: ListMessagesAnswer['messages'][number] = {
  ...{ id: runId, role: 'agent', runId, createdAt: '2026-11-21T09:30:00.180Z', status: 'completed', error: null },
  parts: [
    {
      ...{ type: 'tool_call', toolCallId: 'call_7f3a', toolName: 'look_up_order', title: 'Look up an order' },
      ...{ toolInput: { order: 1042 }, state: 'completed', summary: 'Shipped.', durationMs: 812 },
      approval: { requestId: PERMISSION_REQUEST, state: 'allowed' },
    },
    {
      ...{ type: 'text', text: 'Your order 1042 left our warehouse this morning.', state: 'done' },
      stepId: `${runId}-2-1`,
    },
  ],
};

const first = (text: string) => ({ type: 'user.message' as const, content: [{ type: 'text' as const, text }] });

export const BODY_EXAMPLES: ExamplesOf<'body'> = {
  createThread: {
    message: {
      summary: 'With a message: the first Run is queued',
      value: { userId: 'customer-4711', input: first('Where is my order 1042?') },
    },
    file: {
      summary: 'With a draft file',
      value: {
        userId: 'customer-4711',
        input: first('Is this invoice right?'),
        resources: [{ type: 'file', file_id: fileId }],
      },
    },
    empty: { summary: 'An empty Thread, without a Run', value: { userId: 'customer-4711' } },
    reference: {
      summary: 'With a reference of your own',
      value: { userId: 'customer-4711', externalRef: 'order-1042', input: first('Where is my order 1042?') },
    },
  },
  updateThread: {
    title: { summary: 'A title', value: { title: 'Order 1042' } },
    derived: { summary: 'Restore the title of the first message', value: { title: null } },
  },
  sendEvents: {
    message: {
      summary: 'A message',
      value: { events: [{ type: 'user_message', text: 'And when will it arrive?', requestId: 'msg-2' }] },
    },
    file: {
      summary: 'A message with a draft file',
      value: {
        events: [{ type: 'user_message', text: 'See here.', resources: [{ type: 'file', file_id: fileId }] }],
      },
    },
    decision: {
      summary: 'Allow a tool call',
      value: { events: [{ type: 'permission_decision', requestId: PERMISSION_REQUEST, decision: 'allow_once' }] },
    },
    interrupt: { summary: 'Stop the current Run', value: { events: [{ type: 'user_interrupt' }] } },
    instead: {
      summary: 'Stop the current Run and ask something else',
      value: { events: [{ type: 'user_interrupt' }, { type: 'user_message', text: 'Never mind: cancel my order.' }] },
    },
  },
  createBrowserToken: {
    chat: {
      summary: 'For a chat of one user, from the pages of one application',
      value: {
        userId: 'customer-4711',
        agentId,
        verbs: ['read', 'send', 'decide', 'upload'],
        origins: ['https://app.example.com'],
      },
    },
  },
  attachFile: {
    draft: { summary: 'A draft that was uploaded', value: { fileId } },
    inline: {
      summary: 'Bytes in the request',
      value: { name: 'note.txt', contentType: 'text/plain', contentBase64: 'SGVsbG8h' },
    },
  },
};

const titled: ThreadSummary = { ...idle, title: 'Order 1042' };
const extras: Pick<ThreadSummary, 'externalRef' | 'lastMessage'> = {
  externalRef: 'order-1042',
  lastMessage: { role: 'user', text: 'Where is my order 1042?', createdAt: '2026-11-21T09:30:00.123Z' },
};

const done = { done: { summary: 'Done', value: { ok: true as const } } };

export const ANSWER_EXAMPLES: ExamplesOf<'answer'> = {
  createThread: {
    message: { summary: 'With a message', value: { thread, run: queued, links } },
    empty: { summary: 'Without `input`', value: { thread: empty, run: null, links } },
  },
  listThreads: { page: { summary: 'The last page', value: { threads: [thread], nextCursor: null } } },
  listAllThreads: {
    page: { summary: 'The last page', value: { threads: [thread], nextCursor: null } },
    extended: {
      summary: 'With `extended=true`',
      value: { threads: [{ ...thread, ...extras, run: queued }], nextCursor: null },
    },
  },
  uploadFile: { draft: { summary: 'A draft', value: { file: publicFile } } },
  createBrowserToken: {
    token: {
      summary: 'A token for 15 minutes',
      value: { token: 'spool_bt_eyJhbGciOi…', expiresAt: '2026-11-21T09:45:00.000Z' },
    },
  },
  getAgent: {
    agent: {
      summary: 'An Agent',
      value: {
        agent: {
          id: agentId,
          name: 'Orders',
          kind: 'cattle',
          published: true,
          description: 'Answers questions about orders.',
        },
      },
    },
  },
  getThread: {
    idle: { summary: 'Its Run is completed', value: { thread: idle, run: completed, links } },
    running: { summary: 'Its Run is waiting for a worker', value: { thread, run: queued, links } },
    empty: { summary: 'No Run yet', value: { thread: empty, run: null, links } },
  },
  updateThread: { title: { summary: 'With its new title', value: { thread: titled, run: completed, links } } },
  deleteThread: done,
  archiveThread: done,
  unarchiveThread: done,
  sendEvents: {
    message: {
      summary: 'A message',
      value: {
        acceptedAt: '2026-11-21T09:30:00.123Z',
        events: [{ type: 'user_message', requestId: 'msg-2', run: queued }],
        thread,
        warnings: [],
      },
    },
    interrupt: {
      summary: 'An interrupt: the Run is already cancelled',
      value: {
        acceptedAt: '2026-11-21T09:30:04.910Z',
        events: [{ type: 'user_interrupt', requestId: null, run: cancelled }],
        thread: idle,
        warnings: [],
      },
    },
  },
  listEvents: {
    window: {
      summary: 'The latest entries; older ones exist',
      value: { events: [message, confirmation, piece, ended], truncated: true },
    },
  },
  listMessages: {
    page: {
      summary: 'The newest page; older messages exist',
      value: { messages: [question, answer], nextCursor: ended.id, lastEventId: ended.id },
    },
  },
  listRuns: { page: { summary: 'More pages follow', value: { runs: [completed], nextCursor: runId } } },
  getRun: {
    completed: { summary: 'Completed', value: { run: completed } },
    failed: { summary: 'Failed', value: { run: failed } },
  },
  retryRun: { retry: { summary: 'A new Run', value: { run: { ...queued, trigger: 'retry' } } } },
  attachFile: { attached: { summary: 'Attached', value: { file: threadFile } } },
  listFiles: { files: { summary: 'One attachment', value: { files: [threadFile] } } },
  detachFile: done,
  getFile: { file: { summary: 'A file', value: { file: publicFile } } },
  deleteFile: done,
  getFileLink: {
    link: {
      summary: 'A link for five minutes',
      value: { url: 'https://spool.example/file-links/eyJhbGciOi', expiresAt: '2026-11-21T09:35:00.000Z' },
    },
  },
};

/** A stream of `?until=idle`, whole. */
export const STREAM_EXAMPLE = [
  preamble(1_800),
  threadEventFrame(message),
  threadEventFrame(piece),
  KEEPALIVE,
  threadEventFrame(ended),
  THREAD_IDLE_FRAME,
].join('');

/** A message of each code, as callers get it. */
export const MESSAGE_EXAMPLES: Record<ErrorCode, string> = {
  invalid_request: 'body.userId: must not be empty',
  invalid_json: 'The body is not JSON in UTF-8.',
  unauthenticated: 'A valid access token is required.',
  forbidden: 'The caller has no access to this Agent.',
  not_found: 'The Thread was not found.',
  agent_not_published: 'The Agent is not published.',
  service_inactive: 'The Agent’s API access is switched off.',
  readiness_blocked: 'The Agent cannot run now: its harness is missing.',
  idempotency_conflict: 'A Run of the Thread is active; wait for its end, or interrupt it.',
  rate_limited: 'Requests of this token are limited to 600 a minute; wait for Retry-After.',
  internal_error: 'Internal error. Report the X-Request-Id to the operator.',
};
