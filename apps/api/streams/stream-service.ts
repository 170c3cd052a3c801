import type { FastifyReply } from 'fastify';
import type { Authenticator } from '#access';
import type { operations } from '#contract';
import { parseUlid } from '#domain';
import type { ThreadStore } from '#event-store';
import type { LiveHub } from '#live';
import { isDatabaseUnavailable, type Config, type Logger, type PolicyWatch } from '#platform';
import type { ApiRequest } from '../http/caller.ts';
import { ApiError, notFound, toApiError, unauthenticated } from '../http/http-errors.ts';
import type { AccessGuard } from '../access-guard.ts';
import { endRequestSpan } from '../http/request-traces.ts';
import { STREAM_HEADERS } from './event-stream.ts';
import { OpenStreams, type ReadStanding } from './open-streams.ts';
import { refuseStream, streamLimits } from './stream-limits.ts';

export interface StreamServiceOptions {
  authenticator: Authenticator;
  access: AccessGuard;
  store: ThreadStore;
  hub: LiveHub;
  watch: PolicyWatch;
  config: Config;
  logger: Logger;
}

type StreamRequest = ApiRequest<typeof operations.streamEvents>;

/**
 * The event stream of a Thread (docs/spec/decisions.md#stream): everything that can be refused is refused before it
 * starts.
 */
export class StreamService {
  readonly openStreams: OpenStreams;

  constructor(private readonly options: StreamServiceOptions) {
    const { hub, watch, config } = options;
    this.openStreams = new OpenStreams({
      hub,
      watch,
      keepAliveMs: config.STREAM_KEEPALIVE_MS,
      recheck: (authorization, agentId) => this.recheck(authorization, agentId),
    });
  }

  async openStream(request: StreamRequest, reply: FastifyReply): Promise<void> {
    const { caller, input, headers } = request;
    const allowedAt = this.options.watch.moment();
    const { threadId } = input.params;
    const { limit, after, until } = input.query;
    // A browser that reconnects repeats its URL, and adds the header: that is the newer one.
    const resumeFrom = parseLastEventId(headers['last-event-id']) ?? after;
    const { thread, version, lastEntryId, agent } = await this.options.access.findVisibleThread(caller, threadId);
    if (until === 'idle' && resumeFrom === lastEntryId && AT_REST.has(thread.status)) {
      // An EventSource reconnects each time a stream ends, and stops only at a 204.
      return void reply.status(204).header('Cache-Control', STREAM_HEADERS['Cache-Control']).send();
    }
    const fromStart = limit >= version ? '' : null;
    const afterEventId = resumeFrom ?? fromStart ?? (await this.options.store.findLogStart(threadId, limit));
    const owners = { threadId, tokenId: caller.tokenId, organizationId: agent.organizationId };
    // No `await` from here until the stream is open: two concurrent requests must not both take the last place.
    const refusal = refuseStream(
      this.openStreams.counts(owners),
      streamLimits(this.options.config, caller.limits.maxStreams ?? 0),
    );
    if (refusal !== null) throw refusal;
    // Fastify has a route for HEAD wherever there is one for GET. There is nothing to follow.
    if (request.method === 'HEAD') return void reply.headers(STREAM_HEADERS).send();
    for (const [name, value] of Object.entries(reply.getHeaders())) reply.raw.setHeader(name, value ?? '');
    reply.hijack();
    // Its 'close' has been and gone: nothing would ever let go of the stream.
    if (reply.raw.destroyed) return;
    this.openStreams.open(reply.raw, {
      ...owners,
      afterEventId,
      // Of a Thread at rest: who comes back to one, as most do after a process has gone, costs no second read.
      knownUpTo: afterEventId >= lastEntryId && thread.status === 'IDLE' && until !== 'idle' ? version : 0,
      untilIdle: until === 'idle',
      extended: input.extended,
      authorization: headers.authorization,
      agentId: thread.agent_id,
      allowedAt,
    });
    endRequestSpan(request, reply.raw.statusCode);
  }

  private async recheck(authorization: string | undefined, agentId: string): Promise<ReadStanding> {
    try {
      const caller = await this.options.authenticator.authenticate(authorization);
      if (caller === null) return unauthenticated();
      await this.options.access.findUsableAgent(caller, agentId);
      return 'allowed';
    } catch (error) {
      const refusal = toApiError(error);
      // Not the caller's doing: nothing is known against them, and the next look is a second away.
      if (refusal.status >= 500) {
        // That the database is away is told by the hub.
        if (!isDatabaseUnavailable(error))
          this.options.logger.error({ err: error }, 'checking the access of an open stream failed');
        return 'unknown';
      }
      // A Thread is not there when its Agent is not, as for every other request.
      return refusal.code === 'not_found' ? notFound('Thread') : refusal;
    }
  }
}

/** Statuses of Threads without an active Run. */
const AT_REST = new Set(['IDLE', 'TERMINATED']);

/** Null when there is none; an empty one is what a client has that has not seen an event. Throws ApiError. */
function parseLastEventId(header: string | string[] | undefined): string | null {
  const text = String(header ?? '').trim();
  if (text === '') return null;
  const id = parseUlid(text);
  if (id === null) throw new ApiError('invalid_field', 'Last-Event-ID: must be a ULID');
  return id;
}
