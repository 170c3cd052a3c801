import { SpoolError, toError } from './errors.ts';
import { sendWithProgress } from './progress.ts';
import { delay, jitteredBackoff, later, unlessAborted } from './wait.ts';
import type { TokenSource } from './token-source.ts';

export interface Call {
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** Below the base URL, with a leading slash. */
  path: string;
  query?: Record<string, string | number | undefined>;
  /** Sent as JSON. */
  json?: unknown;
  /** Called for each attempt, because a body can be read only once. */
  body?: () => FormData;
  /** Called with the number of bytes of `body` that have been sent. */
  onSent?: ((bytes: number) => void) | undefined;
  headers?: Record<string, string>;
  signal?: AbortSignal | undefined;
  /** Default: 8. */
  attempts?: number | undefined;
}

export type Fetch = typeof globalThis.fetch;

const ATTEMPTS = 8;
/** How long a response may take. The service answers 503 sooner. A lost connection is not always noticed. */
const RESPONSE_MS = 60_000;
/** How long an upload and its response may take. The service ends a request after 5 minutes. */
const UPLOAD_MS = 330_000;

/** Takes what is needed of a response that is 2xx. */
type Read<Result> = (response: Response) => Promise<Result>;

/** Sends requests to the API. */
export class Http {
  constructor(
    private readonly baseUrl: string,
    private readonly tokens: TokenSource,
    /** Whether a refused token can be renewed. */
    readonly canRenew: boolean,
    private readonly fetch: Fetch,
  ) {}

  /** Returns the JSON of the response. Repeats the request as `send` does, also if only a part of the response arrives. */
  json<Body>(call: Call): Promise<Body> {
    return this.repeat(call, async (response) => parse(await response.text(), response) as Body);
  }

  /** Returns the response, whose body is not read yet. Throws SpoolError, or the signal's reason. */
  send(call: Call): Promise<Response> {
    return this.repeat(call, async (response) => response);
  }

  /**
   * Sends a request until its response is final, or the attempts are used up. Every call must be safe to repeat: one that adds
   * something needs an Idempotency-Key.
   */
  private async repeat<Result>(call: Call, read: Read<Result>): Promise<Result> {
    const { attempts = ATTEMPTS } = call;
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.sendOnce(call, read);
      } catch (error) {
        if (!(error instanceof SpoolError && error.isRetryable) || attempt === attempts) throw error;
        await delay(jitteredBackoff(attempt, error.retryAfter), call.signal);
      }
    }
  }

  /** Sends a request once; a second time with a new token if the token was refused. */
  async sendOnce<Result>(call: Call, read: Read<Result>): Promise<Result> {
    const token = this.tokens.get();
    const value = await unlessAborted(token, call.signal);
    try {
      return await this.request(call, value, read);
    } catch (error) {
      if (!(error instanceof SpoolError && error.status === 401 && this.canRenew)) throw error;
      this.tokens.drop(token);
    }
    return this.request(call, await unlessAborted(this.tokens.get(), call.signal), read);
  }

  private async request<Result>(call: Call, token: string, read: Read<Result>): Promise<Result> {
    const { method, path, query = {}, json, body, onSent, headers, signal } = call;
    const url = new URL(this.baseUrl + path);
    for (const [name, value] of Object.entries(query)) {
      if (value !== undefined) url.searchParams.set(name, String(value));
    }
    const type = json === undefined ? {} : { 'Content-Type': 'application/json' };
    const form = body?.();
    const content = json === undefined ? form : JSON.stringify(json);
    const limit = new AbortController();
    const stop = later(form ? UPLOAD_MS : RESPONSE_MS, () => limit.abort());
    const init: RequestInit = {
      ...{ method, headers: { ...type, ...headers, Authorization: `Bearer ${token}` } },
      signal: signal ? AbortSignal.any([signal, limit.signal]) : limit.signal,
    };
    try {
      const response = await (form && onSent
        ? sendWithProgress({ url, init, form, onSent }, this.fetch)
        : this.fetch(url, content === undefined ? init : { ...init, body: content }));
      if (!response.ok) throw await toError(response);
      return await read(response);
    } catch (cause) {
      signal?.throwIfAborted();
      if (cause instanceof SpoolError) throw cause;
      throw new SpoolError('no_response', `${method} ${path}: no response, or only a part of one.`, { cause });
    } finally {
      stop();
    }
  }
}

/** Waits for a deletion. A 404 is a success, because the response to an earlier attempt may have been lost. */
export async function ifThere(deletion: Promise<unknown>): Promise<void> {
  await deletion.catch((error: unknown) => {
    if (!(error instanceof SpoolError && error.status === 404)) throw error;
  });
}

function parse(text: string, { status }: Response): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new SpoolError('invalid_response', 'The response is not JSON.', { status, cause });
  }
}
