import { SpoolError } from './errors.ts';
import { within } from './wait.ts';

/** Returns a token of Spool: as text, or as the response of `POST /browser-tokens`. */
export type GetToken = () => string | { token: string } | Promise<string | { token: string }>;

/** The share of a token's lifetime after which it is renewed. */
const RENEW_AFTER = 0.8;
/** How long `getToken` may take. */
const ANSWER_MS = 30_000;

/** The current token. Concurrent requests share it, and its renewal. */
export class TokenSource {
  private current: Promise<string> | null = null;
  /** By the monotonic clock, so that a wrong wall clock does no harm. */
  private renewAt = Infinity;

  constructor(private readonly getToken: GetToken) {}

  /**
   * Returns the token, after its renewal if it soon expires. Throws SpoolError `token_unavailable` if `getToken` fails. It has the
   * `status` of the error of `getToken`.
   */
  get(): Promise<string> {
    if (this.current !== null && performance.now() < this.renewAt) return this.current;
    const token = this.renew();
    this.current = token;
    token.catch(() => this.drop(token));
    return token;
  }

  /** Drops a token that was refused. The next `get` renews it. */
  drop(token: Promise<string>): void {
    if (this.current === token) this.current = null;
  }

  private async renew(): Promise<string> {
    const askedAt = performance.now();
    this.renewAt = Infinity;
    try {
      const answer = await within(ANSWER_MS, Promise.resolve(this.getToken()));
      const token = typeof answer === 'string' ? answer : answer.token;
      if (typeof token !== 'string' || token === '') throw new TypeError('getToken must return a token.');
      this.renewAt = askedAt + RENEW_AFTER * lifetimeMs(token);
      return token;
    } catch (cause) {
      const why = cause instanceof Error ? cause.message : String(cause);
      const { status } = (cause ?? {}) as { status?: unknown };
      const details = { cause, status: typeof status === 'number' ? status : undefined };
      throw new SpoolError('token_unavailable', `getToken failed: ${why}`, details);
    }
  }
}

/** Returns the lifetime of a browser token, milliseconds; Infinity for tokens that do not contain one. */
function lifetimeMs(token: string): number {
  try {
    const payload = (token.split('.')[1] ?? '').replaceAll('-', '+').replaceAll('_', '/');
    const { iat, exp } = JSON.parse(atob(payload)) as { iat: number; exp: number };
    const seconds = exp - iat;
    return seconds > 0 ? 1_000 * seconds : Infinity;
  } catch {
    return Infinity;
  }
}
