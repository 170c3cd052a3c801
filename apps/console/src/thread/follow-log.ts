import type { ThreadEventLogEntry as LogEntry } from '#contract';

/** `live`: connected. `reconnecting`: not, and trying. `gone`: the Thread is deleted. `refused`: it may not be read. */
export type Connection = 'connecting' | 'live' | 'reconnecting' | 'gone' | 'refused';

export interface LogToFollow {
  /** Strictly after this entry. */
  after: string;
  /** The entries after an id as they come. `heard` is called whenever anything comes, also a sign of life. */
  read: (after: string, signal: AbortSignal, heard: () => void) => AsyncIterable<LogEntry>;
  onEntry: (entry: LogEntry) => void;
  onConnection: (connection: Connection) => void;
  /** Waits so many milliseconds, or less where there is reason to hope. */
  pause: (ms: number) => Promise<void>;
  signal: AbortSignal;
}

const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 10_000;
/** The service gives a sign of life every 15 s: after so much silence the connection is dead. Milliseconds. */
const SILENCE_MS = 40_000;
/** Answers that stay the same however often one asks. */
const REFUSALS: ReadonlySet<number> = new Set([400, 401, 403]);

/** Follows a log until the signal is aborted or the log is gone: each entry once, in order, whatever becomes of connections. */
export async function followLog(log: LogToFollow): Promise<void> {
  const { onConnection, signal } = log;
  let last = log.after;
  let failures = 0;
  const heard = () => {
    failures = 0;
    onConnection('live');
  };
  onConnection('connecting');
  while (!signal.aborted) {
    const ended = await readOnce(
      log,
      last,
      (entry) => {
        if (entry.id <= last) return;
        last = entry.id;
        log.onEntry(entry);
      },
      heard,
    );
    if (signal.aborted) return;
    if (ended !== null) return onConnection(ended);
    onConnection('reconnecting');
    await log.pause(Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** failures++));
  }
}

/** Reads on one connection to its end. Null: another may do better. */
async function readOnce(
  { read, signal }: LogToFollow,
  after: string,
  onEntry: (entry: LogEntry) => void,
  heard: () => void,
): Promise<'gone' | 'refused' | null> {
  const silence = watchSilence(signal);
  try {
    for await (const entry of read(after, silence.signal, () => {
      silence.heard();
      heard();
    })) {
      onEntry(entry);
    }
    return null;
  } catch (error) {
    const { status } = error as { status?: number };
    if (status === 404) return 'gone';
    return status !== undefined && REFUSALS.has(status) ? 'refused' : null;
  } finally {
    silence.stop();
  }
}

/** A signal that is aborted with the outer one, and after too much silence. */
function watchSilence(outer: AbortSignal) {
  const controller = new AbortController();
  const abort = () => controller.abort();
  outer.addEventListener('abort', abort);
  if (outer.aborted) abort();
  let timer = setTimeout(abort, SILENCE_MS);
  return {
    signal: controller.signal,
    heard: () => {
      clearTimeout(timer);
      timer = setTimeout(abort, SILENCE_MS);
    },
    stop: () => {
      clearTimeout(timer);
      outer.removeEventListener('abort', abort);
      abort();
    },
  };
}
