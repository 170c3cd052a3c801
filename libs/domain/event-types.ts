import type { StoredEvent, ThreadEventType } from './events.ts';

/** The types of entries in the public log. */
export const LOG_ENTRY_TYPES = [
  'user.message',
  'agent.message.delta',
  'agent.thinking.delta',
  'tool.use.started',
  'tool.confirmation.required',
  'tool.use.completed',
  'file.changed',
  'session_files.updated',
  'session.status',
  'usage.updated',
  'run.started',
  'run.completed',
  'run.failed',
] as const;
export type LogEntryType = (typeof LOG_ENTRY_TYPES)[number];

/** The properties of an event type besides its data. */
interface EventTypeFacts {
  /** The version in which this release writes it. */
  schemaVersion: number;
  /** The type of its entry in the public log; null if it never has one. */
  entry: LogEntryType | null;
  /** The input of the folds of state and summaries: the data, only the presence of the event, or nothing. */
  folds: 'data' | 'presence' | 'nothing';
  /** Whether a worker records it as a fact of a step. */
  isRecorded: boolean;
  /** Whether a harness gets it. The index `events_transcript` has the same types. */
  inTranscript: boolean;
  /** Whether the messages of a Thread are read from it. The index `events_of_runs` has the same types. */
  inMessages: boolean;
  /** Whether the timeline of a Run uses it. */
  inTimeline: boolean;
  /** Its effect on the open step, which has stored text and no stored message. */
  openStep: 'sets' | 'clears' | 'keeps';
}

const NOT_READ = {
  ...{ isRecorded: false, inTranscript: false, inMessages: false, inTimeline: false },
  openStep: 'keeps',
} as const;
const OF_RUN = { ...NOT_READ, inTimeline: true } as const;
const OF_ANSWER = { ...OF_RUN, inMessages: true } as const;
const OF_STEP = { ...OF_RUN, isRecorded: true } as const;
const OF_TRANSCRIPT = { ...OF_STEP, inTranscript: true, inMessages: true } as const;

/** All event types that this release can read. Lists in code come from this table. */
export const EVENT_TYPES = {
  'thread.created': { schemaVersion: 1, entry: null, folds: 'data', ...NOT_READ },
  'thread.status_entered': { schemaVersion: 1, entry: 'session.status', folds: 'data', ...NOT_READ },
  'thread.archived': { schemaVersion: 1, entry: 'session.status', folds: 'data', ...NOT_READ },
  'thread.unarchived': { schemaVersion: 1, entry: 'session.status', folds: 'data', ...NOT_READ },
  'thread.terminated': { schemaVersion: 1, entry: null, folds: 'data', ...NOT_READ },
  'thread.title_set': { schemaVersion: 1, entry: null, folds: 'data', ...NOT_READ },
  'message.added': {
    ...{ schemaVersion: 1, entry: 'user.message', folds: 'data', ...NOT_READ },
    ...{ inTranscript: true, inMessages: true },
  },
  'run.queued': { schemaVersion: 1, entry: null, folds: 'data', ...OF_RUN },
  'run.claimed': { schemaVersion: 1, entry: null, folds: 'data', ...OF_RUN, openStep: 'clears' },
  'run.started': { schemaVersion: 1, entry: 'run.started', folds: 'data', ...OF_ANSWER },
  'run.waiting': { schemaVersion: 1, entry: null, folds: 'data', ...OF_RUN },
  'run.resumed': { schemaVersion: 1, entry: null, folds: 'data', ...OF_RUN },
  'run.requeued': { schemaVersion: 1, entry: null, folds: 'data', ...OF_ANSWER, openStep: 'clears' },
  'run.completed': { schemaVersion: 1, entry: 'run.completed', folds: 'data', ...OF_ANSWER },
  'run.failed': { schemaVersion: 1, entry: 'run.failed', folds: 'data', ...OF_ANSWER },
  'run.cancelled': { schemaVersion: 1, entry: 'run.failed', folds: 'data', ...OF_ANSWER },
  'run.expired': { schemaVersion: 1, entry: 'run.failed', folds: 'data', ...OF_ANSWER },
  'assistant.text_added': {
    ...{ schemaVersion: 1, entry: 'agent.message.delta', folds: 'nothing', ...OF_STEP },
    openStep: 'sets',
  },
  'assistant.thinking_added': {
    ...{ schemaVersion: 1, entry: 'agent.thinking.delta', folds: 'nothing', ...OF_STEP },
    ...{ inTimeline: false, openStep: 'sets' },
  },
  'assistant.message_added': {
    ...{ schemaVersion: 1, entry: null, folds: 'presence', ...OF_TRANSCRIPT },
    openStep: 'clears',
  },
  'tool.confirmation_requested': {
    ...{ schemaVersion: 1, entry: 'tool.confirmation.required', folds: 'data', ...OF_STEP, inMessages: true },
  },
  'tool.confirmation_decided': {
    ...{ schemaVersion: 1, entry: null, folds: 'data', ...NOT_READ },
    ...{ inTranscript: true, inMessages: true },
  },
  'tool.started': { schemaVersion: 1, entry: 'tool.use.started', folds: 'nothing', ...OF_TRANSCRIPT },
  'tool.completed': { schemaVersion: 1, entry: 'tool.use.completed', folds: 'presence', ...OF_TRANSCRIPT },
  'usage.recorded': { schemaVersion: 1, entry: 'usage.updated', folds: 'nothing', ...OF_STEP },
  'file.changed': {
    ...{ schemaVersion: 1, entry: 'file.changed', folds: 'nothing', ...OF_STEP },
    ...{ inMessages: true, inTimeline: false },
  },
  'files.updated': {
    ...{ schemaVersion: 1, entry: 'session_files.updated', folds: 'data', ...OF_STEP },
    ...{ inMessages: true, inTimeline: false },
  },
} as const satisfies Record<ThreadEventType, EventTypeFacts>;

type EventFlag = 'isRecorded' | 'inTranscript' | 'inMessages' | 'inTimeline';

/** The event types whose row of the table has this flag. */
export type EventTypesWith<Flag extends EventFlag> = {
  [Type in ThreadEventType]: (typeof EVENT_TYPES)[Type][Flag] extends true ? Type : never;
}[ThreadEventType];

/** Returns the event types whose row of the table fits. */
export function eventTypes(fits: (facts: EventTypeFacts) => boolean): ThreadEventType[] {
  return (Object.keys(EVENT_TYPES) as ThreadEventType[]).filter((type) => fits(EVENT_TYPES[type]));
}

/** Returns the event types whose row of the table has the flag. */
export function eventTypesWith<Flag extends EventFlag>(flag: Flag): EventTypesWith<Flag>[] {
  return eventTypes((facts) => facts[flag]) as EventTypesWith<Flag>[];
}

/** Returns whether this release knows the event in this schema version. */
export function isKnownEvent(event: { type: string; schemaVersion: number }): event is StoredEvent {
  return (
    Object.hasOwn(EVENT_TYPES, event.type) &&
    EVENT_TYPES[event.type as ThreadEventType].schemaVersion === event.schemaVersion
  );
}
