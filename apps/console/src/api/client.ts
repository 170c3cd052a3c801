import type { AdminAnswer, AdminCall, AdminOperations } from '#contract';
import { pageKeyHeader } from './page-key.ts';
import { noteAnswer } from './reachability.ts';

type Operation = AdminOperations[keyof AdminOperations];
type Method = Operation['method'];
export type PathOf<M extends Method, F extends Operation['form']> = Extract<Operation, { method: M; form: F }>['path'];
export type OperationAt<M extends Method, P> = Extract<Operation, { method: M; path: P }>;

/** What the service refused, or that it could not be reached (`status` 0). `message` is for people. */
export class CallError extends Error {
  override name = 'CallError';

  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    /** When it may be tried again, in seconds from then; null where the service did not say. */
    readonly retryAfter: number | null = null,
  ) {
    super(message);
  }
}

/** Called when the session is over: the login page takes its place. */
let onSessionEnd: () => void = () => undefined;
export const whenSessionEnds = (listener: () => void): void => void (onSessionEnd = listener);

/** Reads by an operation of the admin API. Throws CallError. */
export function get<P extends PathOf<'GET', 'json'>>(
  path: P,
  call: AdminCall<OperationAt<'GET', P>> = {},
  signal?: AbortSignal,
): Promise<AdminAnswer<OperationAt<'GET', P>>> {
  return ask('GET', path, call as Given, signal);
}

/** Changes something. Throws CallError. */
export function post<P extends PathOf<'POST', 'json'>>(
  path: P,
  call: AdminCall<OperationAt<'POST', P>> = {},
): Promise<AdminAnswer<OperationAt<'POST', P>>> {
  return ask('POST', path, call as Given);
}

/** Removes something. Throws CallError. */
export function remove<P extends PathOf<'DELETE', 'json'>>(
  path: P,
  call: AdminCall<OperationAt<'DELETE', P>> = {},
): Promise<AdminAnswer<OperationAt<'DELETE', P>>> {
  return ask('DELETE', path, call as Given);
}

/**
 * The lines of an answer as they come; ends when the service ends it. `heard` is called when the answer begins and whenever
 * bytes of it come, also the empty lines that are only signs of life. Throws CallError, also for a last line that is an error.
 */
export async function* lines<M extends 'GET' | 'POST', P extends PathOf<M, 'lines'>>(
  method: M,
  path: P,
  call: AdminCall<OperationAt<M, P>>,
  signal: AbortSignal,
  heard: () => void = () => undefined,
): AsyncGenerator<AdminAnswer<OperationAt<M, P>>> {
  const response = await send(method, path, call as Given, signal);
  // By hand: not every browser can iterate over a stream.
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  try {
    for (;;) {
      heard();
      const { done, value } = await reader.read();
      if (done) return;
      const parts = (rest + value).split('\n');
      rest = parts.pop()!;
      for (const part of parts) {
        if (part === '') continue;
        const line: unknown = JSON.parse(part);
        if (isErrorBody(line)) throw toCallError(response.status, line);
        yield line as AdminAnswer<OperationAt<M, P>>;
      }
    }
  } finally {
    // Whoever stops reading lets go of the connection.
    await reader.cancel().catch(() => undefined);
  }
}

/** Reads the bytes of a file. The browser keeps large ones on its disk. Throws CallError. */
export async function download<P extends PathOf<'GET', 'bytes'>>(
  path: P,
  call: AdminCall<OperationAt<'GET', P>>,
): Promise<Blob> {
  return (await send('GET', path, call as Given)).blob();
}

/** The address of an operation. */
function addressOf(path: string, { params = {}, query = {} }: Given = {}): string {
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(params[name])));
  const set = Object.entries(query).filter(([, value]) => value !== undefined && value !== '');
  const search = new URLSearchParams(set.map(([name, value]) => [name, String(value)])).toString();
  return `/admin/v1${filled}${search === '' ? '' : `?${search}`}`;
}

interface Given {
  params?: Record<string, unknown>;
  query?: Record<string, unknown>;
  body?: unknown;
}

interface ErrorBody {
  error: { code: string; message: string };
}

async function ask<Answer>(method: Method, path: string, call: Given, signal?: AbortSignal): Promise<Answer> {
  const response = await send(method, path, call, signal);
  return (await response.json()) as Answer;
}

async function send(method: Method, path: string, call: Given, signal?: AbortSignal): Promise<Response> {
  const { body } = call;
  const response = await reach(addressOf(path, call), method, body, signal);
  if (response.status === 401) onSessionEnd();
  return checked(response);
}

/** Throws CallError with status 0 where nothing answers. */
export async function reach(url: string, method: string, body?: unknown, signal?: AbortSignal): Promise<Response> {
  const response = await fetch(url, {
    method,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    headers: { ...pageKeyHeader(), ...(body === undefined ? {} : { 'Content-Type': 'application/json' }) },
    ...(signal ? { signal } : {}),
  }).catch((error: unknown) => {
    if (signal?.aborted) throw error;
    noteAnswer(0);
    throw new CallError(0, 'unreachable', 'The service cannot be reached.');
  });
  noteAnswer(response.status);
  return response;
}

/** An answer of success; throws CallError for any other. */
export async function checked(response: Response): Promise<Response> {
  if (response.ok) return response;
  const answered = (await response.json().catch(() => null)) as unknown;
  const retryAfter = Number.parseInt(response.headers.get('Retry-After') ?? '', 10);
  throw toCallError(response.status, answered, Number.isNaN(retryAfter) ? null : retryAfter);
}

const isErrorBody = (answered: unknown): answered is ErrorBody =>
  typeof (answered as ErrorBody | null)?.error?.message === 'string';

function toCallError(status: number, answered: unknown, retryAfter: number | null = null): CallError {
  const { code, message } = isErrorBody(answered)
    ? answered.error
    : { code: 'unknown', message: `The service returned status ${status}.` };
  return new CallError(status, code, message, retryAfter);
}
