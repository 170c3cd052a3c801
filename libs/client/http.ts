import { SpoolError, toError } from './errors.ts';
import { delay, jitteredBackoff } from './wait.ts';
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
  headers?: Record<string, string>;
  signal?: AbortSignal | undefined;
  /** Default: 8. */
  attempts?: number | undefined;
}

export type Fetch = typeof globalThis.fetch;

const ATTEMPTS = 8;

/** Sends requests to the API. */
export class Http {
  constructor(
    private readonly baseUrl: string,
    private readonly tokens: TokenSource,
    /** Whether a refused token can be renewed. */
    readonly canRenew: boolean,
    private readonly fetch: Fetch,
  ) {}

  /** Returns the JSON of the response. Repeats the request as `send` does. */
  async json<Body>(call: Call): Promise<Body> {
    const response = await this.send(call);
    try {
      return (await response.json()) as Body;
    } catch (cause) {
      const details = { status: response.status, cause };
      throw new SpoolError('invalid_response', 'The response is not JSON, or only a part of it arrived.', details);
    }
  }

  /**
   * Sends a request until its response is final, or the attempts are used up. Every call must be safe to repeat: a POST needs an
   * Idempotency-Key. Throws SpoolError, or the signal's reason.
   */
  async send(call: Call): Promise<Response> {
    const { attempts = ATTEMPTS } = call;
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.sendOnce(call);
      } catch (error) {
        if (!(error instanceof SpoolError && error.isRetryable) || attempt === attempts) throw error;
        await delay(jitteredBackoff(attempt, error.retryAfter), call.signal);
      }
    }
  }

  /** Sends a request once; a second time with a new token if the token was refused. */
  async sendOnce(call: Call): Promise<Response> {
    for (let isRenewed = false; ; isRenewed = true) {
      const token = this.tokens.get();
      const response = await this.request(call, await token);
      if (response.ok) return response;
      if (response.status !== 401 || isRenewed || !this.canRenew) throw await toError(response);
      await response.body?.cancel();
      this.tokens.drop(token);
    }
  }

  private async request({ method, path, query = {}, json, body, headers, signal }: Call, token: string) {
    const url = new URL(this.baseUrl + path);
    for (const [name, value] of Object.entries(query)) {
      if (value !== undefined) url.searchParams.set(name, String(value));
    }
    const type = json === undefined ? {} : { 'Content-Type': 'application/json' };
    const init: RequestInit = { method, headers: { ...type, ...headers, Authorization: `Bearer ${token}` } };
    if (signal) init.signal = signal;
    const content = json === undefined ? body?.() : JSON.stringify(json);
    if (content !== undefined) init.body = content;
    try {
      return await this.fetch(url, init);
    } catch (cause) {
      signal?.throwIfAborted();
      throw new SpoolError('no_response', `${method} ${path}: no response.`, { cause });
    }
  }
}
