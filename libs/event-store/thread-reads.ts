import type { StoredEvent, UnknownEvent } from '#domain';
import type { RunSummary, ThreadSummary } from '#projections';
import type { KeyedAnswer, LoadedThread } from './append.ts';

// What ThreadStore returns, and the limits of its reads.

/** A stored answer, with the Thread or the uploaded file that it is about. */
export type StoredAnswer = Omit<KeyedAnswer, 'tokenId' | 'key'> & { threadId: string | null; fileId: string | null };

/** A Thread and its most recent Run. */
export interface ThreadAndRun {
  thread: ThreadSummary;
  /** Null if there is no Run, or if it was not requested. */
  run: RunSummary | null;
  /** The number of events in the stream. */
  version: number;
  /** The last entry of the log, of the log with decisions if this was requested; '' if it is empty. */
  lastEntryId: string;
}

/** The parts to read besides the Thread. */
export interface ThreadParts {
  /** Its most recent Run. */
  withRun?: boolean;
  /** Whether decisions count as entries of the log. */
  withDecisions?: boolean;
}

/** The page of the log to read with a Thread. */
export interface PageWanted extends Pick<ThreadParts, 'withDecisions'> {
  /** The page begins after this id; '' is before every id. */
  after: string;
  maxEvents: number;
  /** The most events that the stream may have. Default: any number. */
  shorterThan?: number | undefined;
}

/** A Thread, and a page of its log from the same snapshot. */
export interface ThreadWithLog extends ThreadAndRun {
  /** Null if it is large, or not wanted. */
  page: LogPage | null;
}

/** A page of the public log and the decisions on confirmation requests, oldest first. */
export interface LogPage {
  events: (StoredEvent | UnknownEvent)[];
  /** The end of the stream when it was read; null if the log continues after the page. */
  end: StreamEnd | null;
}

/** The limits of one read of the log. */
export interface LogBounds {
  maxEvents: number;
  /** The most bytes of event data. A single event may have more. Default: no limit. */
  maxBytes?: number;
}

/** The entries of one read of the log. */
export interface LogWanted extends LogBounds {
  /** Whether the decisions on confirmation requests are entries too. They are not public. Default: no. */
  withDecisions?: boolean;
}

/** A window of the public log, oldest first. */
export interface LogWindow {
  events: (StoredEvent | UnknownEvent)[];
  /** Whether a limit has cut it. */
  isCut: boolean;
}

/** The limits of one page of messages. */
export interface MessageBounds {
  maxRuns: number;
  /** The most bytes of event data. */
  maxBytes: number;
}

/** The events from which the messages of some Runs are assembled, oldest first. */
export interface MessagePage {
  events: (StoredEvent | UnknownEvent)[];
  /** The page before continues with the Runs that were queued before this event; null if there are none. */
  nextId: string | null;
  /** Whether older steps of the newest Run are left out, because it exceeds the limit alone. */
  truncated: boolean;
  /** The last event of the stream when the page was read. */
  lastEventId: string;
}

/** Limits on what is read of a Thread for a harness (read-transcript.sql, read-stopped-texts.sql). */
export interface TranscriptBounds {
  /** The newest events that are read at all. */
  events: number;
  /** The newest bytes that are read whole: of what people said, of stopped texts, and of everything else. */
  bytes: number;
  /** The characters that are kept of an older text. */
  characters: number;
  /** The note at the end of a text that was cut. */
  note: string;
}

/** The steps of a Run by one model that are not in its transcript, and their tokens. */
export interface EarlierUsage {
  /** The model's place in the manifest's fallback models, from 1; 0 for the Agent's first model. */
  fallback: number;
  steps: number;
  inputTokens: number;
  outputTokens: number;
  cachedInputTokens: number;
}

/** The size of a transcript. */
export interface TranscriptSize {
  /** The approximate size of its events. */
  bytes: number;
  /** Whether it has texts of stopped messages. */
  hasStops: boolean;
}

/** A Thread with its transcript. */
export interface ThreadWithTranscript {
  thread: LoadedThread;
  /** Null if the transcript may be large. */
  small: SmallTranscript | null;
}

export interface SmallTranscript {
  size: TranscriptSize;
  /** Null if the transcript is too large to be read before memory is reserved, or has texts of stopped messages. */
  events: StoredEvent[] | null;
}

/** The end of a Thread's stream at one moment. */
export interface StreamEnd {
  version: number;
  /** The id of its last event, public or not. */
  eventId: string;
  /** Whether no Run was active. */
  idle: boolean;
}

/** A Thread whose stored version is not the known one. */
export interface MovedThread {
  threadId: string;
  /** Null if it was deleted. */
  version: number | null;
}

/** The remains of a deleted Thread. */
export interface DeletedThread {
  /** The version of its last event. */
  version: number;
  blobKeys: string[];
}
