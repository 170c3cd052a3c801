import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Callers } from '../http/callers.ts';
import { ApiError, unauthenticated } from '../http/http-errors.ts';

/**
 * How often open answers are checked. With the 2 s cache of tokens, a revocation ends them within 5 s
 * (docs/spec/decisions.md#tokens).
 */
const RECHECK_MS = 1_000;

/** The open answers. Ends each one when its reader disconnects, its token or session ends, or the process stops. */
export class OpenAnswers {
  private readonly open = new Map<FastifyRequest, AbortController>();
  private readonly timer = setInterval(() => void this.recheck(), RECHECK_MS).unref();
  private stopped = false;

  constructor(private readonly callers: Callers) {}

  get size(): number {
    return this.open.size;
  }

  /** Returns a signal that aborts when the answer must end. The reason is an ApiError if the reader is still connected. */
  add(request: FastifyRequest, { raw }: FastifyReply): AbortSignal {
    const end = new AbortController();
    this.open.set(request, end);
    raw.once('close', () => {
      this.open.delete(request);
      end.abort();
    });
    // Closes the connection too, so that the process does not wait for another request.
    raw.once('finish', () => void (this.stopped && raw.socket?.destroySoon()));
    if (this.stopped) end.abort(stopping());
    return end.signal;
  }

  /** Ends all answers, and each one that starts later. */
  stop(): void {
    this.stopped = true;
    clearInterval(this.timer);
    for (const end of this.open.values()) end.abort(stopping());
  }

  private async recheck(): Promise<void> {
    for (const [request, end] of this.open) {
      // If the database is unavailable, nothing was revoked.
      const caller = await this.callers.find(request).catch(() => undefined);
      if (caller === null) end.abort(unauthenticated());
    }
  }
}

const stopping = () => new ApiError('shutting_down', 'The process is shutting down. Try again.');
