import { uploaderFor } from '#access';
import type { Agent } from '#agents';
import {
  countCharacters,
  operations,
  type ListEventsAnswer,
  type ListMessagesAnswer,
  type SendEventsAnswer,
  type ThreadEventInput,
} from '#contract';
import { reduceThread, toExtendedLogEntry, toLogEntry, toMessageEntries, type Message } from '#domain';
import type { Answered, Handled, ThreadStore } from '#event-store';
import { isLargeJson, ownTurn, type Config } from '#platform';
import type { SentEvent, Threads } from '#threads';
import { requireEventVerbs } from './http/browser-rights.ts';
import { callerId, type ApiRequest } from './http/caller.ts';
import { ApiError, notFound } from './http/http-errors.ts';
import { answerOf, requestKey, type Answer, type Idempotency, type RequestKey } from './idempotency.ts';
import { ANSWER_BYTES } from './http/large-answers.ts';
import { renderEventResult, renderThread, type Rendering } from './render.ts';
import { warningsOf } from './send-warnings.ts';
import type { AccessGuard } from './access-guard.ts';

type SendRequest = ApiRequest<typeof operations.sendEvents>;
type ListRequest = ApiRequest<typeof operations.listEvents>;

type MessagesRequest = ApiRequest<typeof operations.listMessages>;

type Settings = Pick<Config, 'EVENTS_PER_BATCH' | 'MESSAGE_TEXT_LIMIT'> & Rendering;

/** Sends and lists the events of a Thread, and lists its messages. */
export class EventService {
  constructor(
    private readonly access: AccessGuard,
    private readonly threads: Threads,
    private readonly store: ThreadStore,
    private readonly idempotency: Idempotency,
    private readonly settings: Settings,
  ) {}

  async listEvents({ caller, input }: ListRequest): Promise<ListEventsAnswer> {
    const { threadId } = input.params;
    const { limit, after, before } = input.query;
    await this.access.findVisibleThread(caller, threadId);
    const bounds = { maxEvents: limit, maxBytes: ANSWER_BYTES, withDecisions: input.extended };
    const { events, isCut } =
      after === undefined
        ? await this.store.readLogBefore(threadId, before ?? null, bounds)
        : await this.store.readLogAfter(threadId, after, bounds);
    if (isLargeJson(events)) await ownTurn();
    const show = input.extended ? toExtendedLogEntry : toLogEntry;
    return { events: events.map((event) => show(event)).filter((entry) => entry !== null), truncated: isCut };
  }

  /** Folds the stored messages with the same function as a client folds the log, so that both show the same messages. */
  async listMessages({ caller, input }: MessagesRequest): Promise<ListMessagesAnswer> {
    const { threadId } = input.params;
    const { limit, before } = input.query;
    await this.access.findVisibleThread(caller, threadId);
    const page = await this.store.readMessages(threadId, before ?? null, { maxRuns: limit, maxBytes: ANSWER_BYTES });
    // The Thread was deleted in the meantime.
    if (page === null) throw notFound('Thread');
    if (isLargeJson(page.events)) await ownTurn();
    const { messages } = reduceThread(page.events.flatMap((event) => toMessageEntries(event)));
    const { nextId: nextCursor, lastEventId } = page;
    const shown = page.truncated ? messages.map(markTruncated) : messages;
    return { messages: shown as ListMessagesAnswer['messages'], nextCursor, lastEventId };
  }

  async sendEvents(request: SendRequest): Promise<Answer> {
    const { caller, input } = request;
    requireEventVerbs(caller, input.body.events);
    refuseTooMuch(input.body.events, this.settings);
    const { agent } = await this.access.findVisibleThread(caller, input.params.threadId);
    const key = await requestKey(request, operations.sendEvents, input.body);
    return this.idempotency.settle(request, key, this.send(request, agent, key));
  }

  private async send(request: SendRequest, agent: Agent, key: RequestKey): Promise<Answered> {
    const { caller, input } = request;
    const { events } = input.body;
    const sent = await this.threads.send(
      { threadId: input.params.threadId, agent, events: events.map(toSentEvent) },
      { id: callerId(caller), owner: uploaderFor(caller) },
      { answer: (handled) => answerOf(key, renderSent(events, handled, this.settings)) },
    );
    const runId = sent.outcomes.find((outcome) => outcome.runId !== null)?.runId ?? undefined;
    request.trail = { ...request.trail, runId };
    return sent;
  }
}

/** Marks the answer as truncated. Such a page has only one Run, which exceeds the limit of a page. */
function markTruncated(message: Message): Message {
  return message.role === 'agent' ? { ...message, truncated: true } : message;
}

function toSentEvent(event: ThreadEventInput): SentEvent {
  switch (event.type) {
    case 'user_message': {
      const fileIds = (event.resources ?? []).map(({ file_id }) => file_id);
      return { type: 'message', text: event.text, requestId: requestIdOf(event), fileIds };
    }
    case 'permission_decision':
      return { type: 'decision', requestId: event.requestId, decision: event.decision };
    case 'user_interrupt':
      return { type: 'interrupt', runId: event.runId ?? null };
  }
}

/**
 * Throws ApiError beyond the settings of this installation, which can be lower than the limits of
 * docs/spec/decisions.md#limits.
 */
function refuseTooMuch(
  events: readonly ThreadEventInput[],
  { EVENTS_PER_BATCH: maxEvents, MESSAGE_TEXT_LIMIT: maxLength }: Settings,
): void {
  if (events.length > maxEvents) {
    throw new ApiError('invalid_field', `body.events: must have at most ${maxEvents} items`);
  }
  // A text never has more characters than UTF-16 units.
  const isTooLong = (text: string): boolean => text.length > maxLength && countCharacters(text) > maxLength;
  const tooLong = events.findIndex((event) => event.type === 'user_message' && isTooLong(event.text));
  if (tooLong === -1) return;
  throw new ApiError('invalid_field', `body.events.${tooLong}.text: must have at most ${maxLength} characters`);
}

/** Returns the request id by either of its names. If both are given, they are equal. */
function requestIdOf(event: ThreadEventInput): string | null {
  if (event.type === 'user_interrupt') return null;
  return event.requestId ?? ('clientRequestId' in event ? (event.clientRequestId ?? null) : null);
}

function renderSent(
  events: readonly ThreadEventInput[],
  { thread: { summaries }, events: stored, outcomes, endedRuns }: Handled,
  settings: Rendering,
): SendEventsAnswer {
  const { thread, runs } = summaries;
  if (thread === null) throw new Error('A batch was applied to a Thread without a summary.');
  const results = events.map((event, i) => {
    const runId = outcomes[i]?.runId ?? '';
    return renderEventResult(event.type, requestIdOf(event), runs.get(runId) ?? endedRuns.get(runId), settings);
  });
  const acceptedAt = stored.at(-1)?.occurredAt ?? new Date().toISOString();
  return { acceptedAt, events: results, thread: renderThread(thread, settings), warnings: warningsOf(outcomes) };
}
