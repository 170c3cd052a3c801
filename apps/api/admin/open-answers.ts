import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Callers } from '../http/callers.ts';
import { ApiError, unauthenticated } from '../http/http-errors.ts';

/**
 * With the 2 s for which tokens are remembered: a revocation ends long answers within 5 s
 * (docs/spec/decisions.md#tokens).
 */
const RECHECK_MS = 1_000;

/** Answers that are under way: they end when their reader hangs up, their token or session ends, or the process stops. */
export class OpenAnswers {
  private readonly open = new Map<FastifyRequest, AbortController>();
  private readonly timer = setInterval(() => void this.recheck(), RECHECK_MS).unref();
  private stopped = false;

  constructor(private readonly callers: Callers) {}

  get size(): number {
    return this.open.size;
  }

  /** Aborted when the answer is to end, with an ApiError where the reader is to be told why. */
  add(request: FastifyRequest, { raw }: FastifyReply): AbortSignal {
    const end = new AbortController();
    this.open.set(request, end);
    raw.once('close', () => {
      this.open.delete(request);
      end.abort();
    });
    // The connection goes too: the process does not wait for another request.
    raw.once('finish', () => void (this.stopped && raw.socket?.destroySoon()));
    if (this.stopped) end.abort(stopping());
    return end.signal;
  }

  /** For good. */
  stop(): void {
    this.stopped = true;
    clearInterval(this.timer);
    for (const end of this.open.values()) end.abort(stopping());
  }

  private async recheck(): Promise<void> {
    for (const [request, end] of this.open) {
      // A database that is away has revoked nothing.
      const caller = await this.callers.find(request).catch(() => undefined);
      if (caller === null) end.abort(unauthenticated());
    }
  }
}

const stopping = () => new ApiError('shutting_down', 'The process is shutting down. Try again.');
