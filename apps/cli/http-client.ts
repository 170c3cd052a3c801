import { setTimeout as wait } from 'node:timers/promises';
import { adminOperations, type AdminOperation, type AdminOperationName } from '#contract';
import type { AdminClient, AnswerOf, CallOf, FileOperation } from './admin-client.ts';
import { CommandError, exitOfCode } from './exit-codes.ts';
import { maskTokens } from './secrets.ts';
import type { ServiceAddress } from './service-address.ts';

/** How often a request that comes too soon is made again, and for how long it is waited at most each time. */
const MAX_TRIES = 5;
const MAX_WAIT_S = 65;

interface Given {
  params?: object;
  query?: object;
  body?: unknown;
}

/** The admin API by HTTP. */
export class HttpClient implements AdminClient {
  constructor(
    private readonly service: ServiceAddress,
    private readonly note: (text: string) => void,
  ) {}

  get apiUrl(): string {
    return `${this.service.origin}/api/v1`;
  }

  async call<N extends AdminOperationName>(name: N, input: CallOf<N> = {}): Promise<AnswerOf<N>> {
    const text = await this.guard(async () => (await this.send(name, input)).text());
    return this.parse(text) as AnswerOf<N>;
  }

  async *lines<N extends AdminOperationName>(
    name: N,
    input: CallOf<N> = {},
    signal?: AbortSignal,
  ): AsyncGenerator<AnswerOf<N>, void, undefined> {
    // Ends the request also where the caller stops reading.
    const abort = new AbortController();
    const stop = (): void => abort.abort();
    signal?.addEventListener('abort', stop, { once: true });
    if (signal?.aborted) stop();
    try {
      const { body } = await this.guard(() => this.send(name, input, abort.signal));
      const decoder = new TextDecoder();
      let rest = '';
      const chunks = body?.[Symbol.asyncIterator]();
      for (;;) {
        const chunk = await this.guard(async () => chunks?.next());
        if (chunk === undefined || chunk.done) break;
        const lines = (rest + decoder.decode(chunk.value as Uint8Array, { stream: true })).split('\n');
        rest = lines.pop() ?? '';
        for (const line of lines) if (line !== '') yield this.parseLine(line) as AnswerOf<N>;
      }
      if (rest !== '') yield this.parseLine(rest) as AnswerOf<N>;
    } finally {
      signal?.removeEventListener('abort', stop);
      stop();
    }
  }

  /** One that is cut off has fewer bytes than its head says, and fetch throws. */
  async *bytes(name: FileOperation, input: CallOf<FileOperation>): AsyncGenerator<Uint8Array, void, undefined> {
    const { body } = await this.guard(() => this.send(name, input));
    const chunks = body?.[Symbol.asyncIterator]();
    try {
      for (;;) {
        const chunk = await this.guard(async () => chunks?.next());
        if (chunk === undefined || chunk.done) return;
        yield chunk.value as Uint8Array;
      }
    } finally {
      // Where the caller stops reading.
      await chunks?.return?.();
    }
  }

  async close(): Promise<void> {}

  private async send(name: AdminOperationName, input: Given, signal?: AbortSignal): Promise<Response> {
    const { method, path }: AdminOperation = adminOperations[name];
    const url = `${this.service.origin}/admin/v1${fillPath(path, input.params)}${queryOf(input.query)}`;
    const init: RequestInit = { method, redirect: 'error', headers: { authorization: `Bearer ${this.service.token}` } };
    if (signal) init.signal = signal;
    if (input.body !== undefined) {
      init.headers = { ...init.headers, 'content-type': 'application/json' };
      init.body = JSON.stringify(input.body);
    }
    for (let tries = 1; ; tries++) {
      const response = await fetch(url, init);
      if (response.ok) return response;
      const retryAfter = Number(response.headers.get('retry-after') ?? NaN);
      const mayWait = response.status === 429 && retryAfter >= 0 && retryAfter <= MAX_WAIT_S && tries < MAX_TRIES;
      if (!mayWait) throw errorOf(response.status, await response.text());
      await response.body?.cancel();
      this.note(`Rate limit of this token reached; waiting ${retryAfter} s.`);
      await wait(retryAfter * 1_000, undefined, signal ? { signal } : {});
    }
  }

  /** What fetch throws says nothing in its own words, and may say the token. */
  private async guard<T>(act: () => Promise<T>): Promise<T> {
    try {
      return await act();
    } catch (error) {
      if (error instanceof CommandError) throw error;
      const { code } = ((error as Error).cause ?? error) as { code?: string };
      const why = typeof code === 'string' ? ` (${code})` : '';
      throw new CommandError('away', `The service at ${this.service.origin} does not answer${why}.`, { cause: error });
    }
  }

  private parse(text: string): unknown {
    try {
      return JSON.parse(text);
    } catch {
      throw new CommandError(
        'away',
        `The server at ${this.service.origin} is not a Spool API: the response is not JSON.`,
      );
    }
  }

  /** A stream that has begun has no status left to tell by: the error is its last line. */
  private parseLine(line: string): unknown {
    const value = this.parse(line);
    if (readError(value) !== null) throw errorOf(0, line);
    return value;
  }
}

function fillPath(path: string, params: object = {}): string {
  const values = new Map<string, unknown>(Object.entries(params));
  return path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(values.get(name))));
}

function queryOf(query: object = {}): string {
  const set = Object.entries(query).filter(([, value]) => value !== undefined);
  const search = new URLSearchParams(set.map(([name, value]): [string, string] => [name, String(value)]));
  return search.size > 0 ? `?${search.toString()}` : '';
}

function errorOf(status: number, text: string): CommandError {
  let body: unknown = null;
  try {
    body = JSON.parse(text);
  } catch {
    // Something on the way has answered, and not a Spool.
  }
  const error = readError(body);
  if (error === null) return new CommandError(status === 404 ? 'usage' : 'away', notOurs(status));
  const away = status === 502 || status === 503 || status === 504;
  const exit = away ? 'away' : exitOfCode(error.code);
  return new CommandError(exit, maskTokens(withoutPlaces(error.message)));
}

/** Where in the request something stands is of no use to people who have typed no request. */
const withoutPlaces = (message: string): string => message.replace(/(^|; )(?:body|query|path)\./g, '$1');

const notOurs = (status: number): string =>
  `The server returned status ${status}, but not as a Spool API does; check SPOOL_URL.`;

function readError(body: unknown): { code: string; message: string } | null {
  const { error } = (body ?? {}) as { error?: { code?: unknown; message?: unknown } };
  if (typeof error?.code !== 'string' || typeof error.message !== 'string') return null;
  return { code: error.code, message: error.message };
}
