import type { FastifyReply } from 'fastify';
import type { Authenticator } from '#access';
import { LAST_EVENT_HEADER, type operations } from '#contract';
import { parseUlid } from '#domain';
import type { ThreadStore } from '#event-store';
import type { LiveHub } from '#live';
import { isDatabaseUnavailable, type Config, type Logger, type PolicyWatch } from '#platform';
import type { ApiRequest } from '../http/caller.ts';
import { ApiError, notFound, toApiError, tokenExpired, unauthenticated } from '../http/http-errors.ts';
import type { AccessGuard } from '../access-guard.ts';
import { endRequestSpan } from '../http/request-traces.ts';
import { STREAM_HEADERS } from './event-stream.ts';
import { OpenStreams, type ReadAccess } from './open-streams.ts';
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

/** Opens event streams of Threads (docs/spec/decisions.md#stream). All refusals happen before the stream starts. */
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
    const reached = this.options.hub.expectReader(request.input.params.threadId);
    try {
      await this.openExpected(request, reply);
    } finally {
      reached();
    }
  }

  private async openExpected(request: StreamRequest, reply: FastifyReply): Promise<void> {
    const { caller, input, headers } = request;
    const { access, store } = this.options;
    const allowedAt = this.options.watch.moment();
    const { threadId } = input.params;
    const { limit, after, until } = input.query;
    // A browser that reconnects repeats its URL and adds the header, so the header is newer.
    const resumeFrom = parseLastEventId(headers['last-event-id']) ?? after;
    const shown = { withDecisions: input.extended };
    const wanted = {
      ...shown,
      after: resumeFrom ?? '',
      maxEvents: FIRST_PAGE,
      ...(resumeFrom === null && { shorterThan: limit }),
    };
    const found = await store.findThreadWithLog(threadId, wanted);
    const { thread, version, lastEntryId, page, agent } = await access.requireVisible(caller, found);
    if (until === 'idle' && resumeFrom === lastEntryId && AT_REST.has(thread.status)) {
      // An EventSource reconnects each time a stream ends, and stops only at a 204.
      return void reply.status(204).header('Cache-Control', STREAM_HEADERS['Cache-Control']).send();
    }
    const fromStart = limit >= version ? '' : null;
    const afterEventId = resumeFrom ?? fromStart ?? (await store.findLogStart(threadId, limit, shown));
    const user = caller.kind === 'browser' ? caller : null;
    const { organizationId } = agent;
    const owners = { threadId, userKey: user?.userKey ?? null, tokenId: caller.tokenId, organizationId };
    // No `await` until the stream is open, because two concurrent requests must not both take the last place.
    const refusal = refuseStream(
      this.openStreams.counts(owners),
      streamLimits(this.options.config, {
        ofUser: user?.userLimits.maxStreams ?? undefined,
        ofToken: caller.limits.maxStreams ?? 0,
      }),
    );
    if (refusal !== null) throw refusal;
    if (input.extended) reply.header(LAST_EVENT_HEADER, lastEntryId || FIRST_ID);
    // Fastify adds a HEAD route to each GET route. HEAD opens no stream.
    if (request.method === 'HEAD') return void reply.headers(STREAM_HEADERS).send();
    for (const [name, value] of Object.entries(reply.getHeaders())) reply.raw.setHeader(name, value ?? '');
    reply.hijack();
    // 'close' was already emitted, so it would never release the stream.
    if (reply.raw.destroyed) return;
    this.openStreams.open(reply.raw, {
      ...owners,
      afterEventId,
      firstPage: page,
      untilIdle: until === 'idle',
      extended: input.extended,
      authorization: headers.authorization,
      agentId: thread.agent_id,
      allowedAt,
    });
    endRequestSpan(request, reply.raw.statusCode);
  }

  private async recheck(authorization: string | undefined, agentId: string): Promise<ReadAccess> {
    try {
      const { authenticator } = this.options;
      const caller = await authenticator.authenticate(authorization);
      if (caller === null) return (await authenticator.hasExpired(authorization)) ? tokenExpired() : unauthenticated();
      await this.options.access.findUsableAgent(caller, agentId);
      return 'allowed';
    } catch (error) {
      const refusal = toApiError(error);
      // A failed check is not the caller's fault. The next one follows in a second.
      if (refusal.status >= 500) {
        // The hub logs an unavailable database.
        if (!isDatabaseUnavailable(error))
          this.options.logger.error({ err: error }, 'checking the access of an open stream failed');
        return 'unknown';
      }
      // If the Agent is not found, the Thread is not found either, as in every other request.
      return refusal.code === 'not_found' ? notFound('Thread') : refusal;
    }
  }
}

/** The most entries that are read with the Thread. */
const FIRST_PAGE = 200;

/** Before every id. */
const FIRST_ID = '0'.repeat(26);

/** Statuses of Threads without an active Run. */
const AT_REST = new Set(['IDLE', 'TERMINATED']);

/** Returns null for no header and for an empty one, which a client sends that has seen no event. Throws ApiError. */
function parseLastEventId(header: string | string[] | undefined): string | null {
  const text = String(header ?? '').trim();
  if (text === '') return null;
  const id = parseUlid(text);
  if (id === null) throw new ApiError('invalid_field', 'Last-Event-ID: must be a ULID');
  return id;
}
