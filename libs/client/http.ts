import { SpoolError, toError } from './errors.ts';
import { sendWithProgress } from './progress.ts';
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
  /** Called with the number of bytes of `body` that have been sent. */
  onSent?: ((bytes: number) => void) | undefined;
  headers?: Record<string, string>;
  signal?: AbortSignal | undefined;
  /** Default: 8. */
  attempts?: number | undefined;
}

export type Fetch = typeof globalThis.fetch;

const ATTEMPTS = 8;
/** How long the head of a response may take. The service answers 503 sooner. */
const RESPONSE_MS = 60_000;

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
    return this.repeat(call, async (response) => parse(await textOf(response), response) as Body);
  }

  /** Returns the response, whose body is not read yet. Throws SpoolError, or the signal's reason. */
  send(call: Call): Promise<Response> {
    return this.repeat(call, async (response) => response);
  }

  /**
   * Sends a request until its response is final, or the attempts are used up. Every call must be safe to repeat: a POST needs an
   * Idempotency-Key.
   */
  private async repeat<Result>(call: Call, read: (response: Response) => Promise<Result>): Promise<Result> {
    const { attempts = ATTEMPTS } = call;
    for (let attempt = 1; ; attempt++) {
      try {
        return await read(await this.sendOnce(call));
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

  private async request({ method, path, query = {}, json, body, onSent, headers, signal }: Call, token: string) {
    const url = new URL(this.baseUrl + path);
    for (const [name, value] of Object.entries(query)) {
      if (value !== undefined) url.searchParams.set(name, String(value));
    }
    const type = json === undefined ? {} : { 'Content-Type': 'application/json' };
    const init: RequestInit = { method, headers: { ...type, ...headers, Authorization: `Bearer ${token}` } };
    const form = body?.();
    const content = json === undefined ? form : JSON.stringify(json);
    // A lost connection is not always noticed. An upload may take any time.
    const silence = new AbortController();
    const timer = form ? undefined : setTimeout(() => silence.abort(), RESPONSE_MS);
    init.signal = signal ? AbortSignal.any([signal, silence.signal]) : silence.signal;
    try {
      if (form && onSent) return await sendWithProgress({ url, init, form, onSent }, this.fetch);
      return await this.fetch(url, content === undefined ? init : { ...init, body: content });
    } catch (cause) {
      signal?.throwIfAborted();
      throw new SpoolError('no_response', `${method} ${path}: no response.`, { cause });
    } finally {
      clearTimeout(timer);
    }
  }
}

function textOf(response: Response): Promise<string> {
  return response.text().catch((cause: unknown) => {
    throw new SpoolError('no_response', 'Only a part of the response arrived.', { status: response.status, cause });
  });
}

function parse(text: string, { status }: Response): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new SpoolError('invalid_response', 'The response is not JSON.', { status, cause });
  }
}
