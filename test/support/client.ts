import { createParser } from 'eventsource-parser';
import { eventually } from '#testing';

/** A caller as the contract knows it: a token, the id of an Agent, and HTTP. */
export interface Caller {
  baseUrl: string;
  token: string;
  agentId: string;
}

export interface Answer<Body = Json> {
  status: number;
  headers: Headers;
  body: Body;
}

export type Json = Record<string, unknown>;

export interface Run {
  id: string;
  status: string;
  error: { code: string } | null;
  finalOutput: { text: string } | null;
}

export interface ThreadAnswer {
  thread: { id: string; status: string; last_run_id: string | null };
  run: Run | null;
  links: { thread: string };
}

export interface LogEntry {
  id: string;
  type: string;
  runId: string | null;
  status: string;
  content: string;
  toolCallId?: string;
}

/** One request; the body is parsed whatever the status. */
export async function send<Body = Json>(
  { baseUrl, token }: Caller,
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<Answer<Body>> {
  const init: RequestInit = { method, headers: { authorization: `Bearer ${token}`, ...headers } };
  if (body !== undefined) {
    init.headers = { ...init.headers, 'content-type': 'application/json' };
    init.body = typeof body === 'string' ? body : JSON.stringify(body);
  }
  const response = await fetch(`${baseUrl}${path}`, init);
  return { status: response.status, headers: response.headers, body: (await response.json()) as Body };
}

const PART_CHARACTERS = 32_000;

/** Creates a Thread with a message, in parts of the longest that one may have. */
export function createThread(caller: Caller, text: string, key?: string): Promise<Answer<ThreadAnswer>> {
  const content = [];
  for (let at = 0; at === 0 || at < text.length; at += PART_CHARACTERS)
    content.push({ type: 'text', text: text.slice(at, at + PART_CHARACTERS) });
  const input = { type: 'user.message', content };
  const headers: Record<string, string> = key === undefined ? {} : { 'idempotency-key': key };
  return send(caller, 'POST', `/agents/${caller.agentId}/threads`, { userId: 'tester', input }, headers);
}

/** What a caller was told: a 201, and what it had said. */
export interface Acknowledged {
  threadId: string;
  runId: string;
  text: string;
}

/** Creates a Thread with a message. Throws unless it is acknowledged. */
export async function createAcknowledged(caller: Caller, text: string): Promise<Acknowledged> {
  const { status, body } = await createThread(caller, text);
  if (status !== 201) throw new Error(`a Thread was not created: ${status} ${JSON.stringify(body)}`);
  return { threadId: body.thread.id, runId: body.run!.id, text };
}

export function getThread(caller: Caller, threadId: string): Promise<Answer<ThreadAnswer>> {
  return send(caller, 'GET', `/threads/${threadId}`);
}

export function postEvents(caller: Caller, threadId: string, ...events: Json[]): Promise<Answer> {
  return send(caller, 'POST', `/threads/${threadId}/events`, { events });
}

/** The whole public log, page by page. */
export async function readLog(caller: Caller, threadId: string): Promise<LogEntry[]> {
  type Page = { events: LogEntry[]; truncated: boolean };
  const entries: LogEntry[] = [];
  for (let after = '0'.repeat(26), truncated = true; truncated; after = entries.at(-1)?.id ?? after) {
    const { body } = await send<Page>(caller, 'GET', `/threads/${threadId}/events?limit=1000&after=${after}`);
    entries.push(...body.events);
    truncated = body.truncated;
  }
  return entries;
}

/** The first entry of the log that is of this type, once there is one. */
export async function waitForEntry(caller: Caller, threadId: string, type: string): Promise<LogEntry> {
  const find = async (): Promise<LogEntry | undefined> =>
    (await readLog(caller, threadId)).find((entry) => entry.type === type);
  return eventually(find, { what: `the log has ${type}`, timeoutMs: 20_000 });
}

export interface Frame {
  event: string | undefined;
  id: string | undefined;
  data: string;
}

/** A 204 tells a client that resumes after the last entry that the Thread is idle. */
const AT_REST: Frame = { event: 'thread.idle', id: undefined, data: '{}' };

/** Reads a stream to its end, or until `stop` says so of a frame. */
export async function readStream(
  { baseUrl, token }: Caller,
  path: string,
  { lastEventId, stop = () => false }: { lastEventId?: string | undefined; stop?: (frame: Frame) => boolean } = {},
): Promise<Frame[]> {
  const abort = new AbortController();
  const headers: Record<string, string> = { authorization: `Bearer ${token}`, accept: 'text/event-stream' };
  if (lastEventId !== undefined) headers['last-event-id'] = lastEventId;
  const response = await fetch(`${baseUrl}${path}`, { headers, signal: abort.signal });
  if (response.status === 204) return [AT_REST];
  if (!response.ok || response.body === null) throw new Error(`the stream answered ${response.status}`);
  const frames: Frame[] = [];
  let stopped = false;
  const parser = createParser({
    onEvent: ({ event, id, data }) => {
      if (stopped) return;
      frames.push({ event, id, data });
      stopped = stop({ event, id, data });
    },
  });
  const decoder = new TextDecoder();
  for await (const chunk of response.body) {
    parser.feed(decoder.decode(chunk as Uint8Array, { stream: true }));
    if (stopped) break;
  }
  abort.abort();
  return frames;
}

export function entriesOf(frames: readonly Frame[]): LogEntry[] {
  return frames.filter(({ event }) => event === 'thread.event').map(({ data }) => JSON.parse(data) as LogEntry);
}

const FRAMES_A_VISIT = 4;

/**
 * Follows a Thread until it is idle, as a reader with a bad line: cut off every few frames, it comes back by Last-Event-ID,
 * to the next API in turn.
 */
export async function follow(callers: readonly Caller[], threadId: string): Promise<LogEntry[]> {
  const entries: LogEntry[] = [];
  for (let visit = 0; ; visit++) {
    let seen = 0;
    const frames = await readStream(callers[visit % callers.length]!, `/threads/${threadId}/events/stream?until=idle`, {
      lastEventId: entries.at(-1)?.id,
      stop: () => ++seen === FRAMES_A_VISIT,
    });
    entries.push(...entriesOf(frames));
    if (frames.at(-1)?.event === 'thread.idle') return entries;
  }
}

/** Runs `work` for 0..count-1, at most `connections` at once. */
export async function inParallel<T>(count: number, connections: number, work: (i: number) => Promise<T>): Promise<T[]> {
  const results: T[] = [];
  let next = 0;
  const loop = async (): Promise<void> => {
    for (let i = next++; i < count; i = next++) results[i] = await work(i);
  };
  await Promise.all(Array.from({ length: connections }, loop));
  return results;
}
