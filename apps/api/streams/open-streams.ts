import type { ServerResponse } from 'node:http';
import type { ApiError } from '../http/http-errors.ts';
import type { PerScope } from './stream-limits.ts';
import { EventStream, type StreamRequest, type StreamDependencies } from './event-stream.ts';
import { metrics } from '../metrics.ts';

/** The result of an access check: an error is a refusal, and 'unknown' means that the check failed. */
export type ReadAccess = 'allowed' | 'unknown' | ApiError;

export interface OpenStreamsOptions extends StreamDependencies {
  /** Silence after which a keepalive is sent. */
  keepAliveMs: number;
  /** Must not reject. */
  recheck: (authorization: string | undefined, agentId: string) => Promise<ReadAccess>;
}

/**
 * A revocation ends streams within 5 s (docs/spec/decisions.md#stream). The watch notices it within a second and triggers a
 * check of all streams. This interval covers expiry and a failed watch. It costs no query while the cached access is valid.
 */
const RECHECK_MS = 1_000;
const PARALLEL_RECHECKS = 8;
/** How often streams are checked within the time of one silence. */
const CHECKS_PER_SILENCE = 15;

/** The Thread, user, token and organization that a stream counts for. A Thread belongs to the organization of its Agent. */
export type StreamOwners = Pick<StreamRequest, 'threadId' | 'userKey' | 'tokenId' | 'organizationId'>;

/** All streams of the process. One timer for all of them sends keepalives, and another one checks access. */
export class OpenStreams {
  private readonly streams = new Set<EventStream>();
  private readonly perThread = new KeyedCount();
  private readonly perUser = new KeyedCount();
  private readonly perToken = new KeyedCount();
  private readonly perOrganization = new KeyedCount();
  private readonly timers: NodeJS.Timeout[];
  private rechecking = false;
  private closed = false;

  constructor(private readonly options: OpenStreamsOptions) {
    const checkMs = Math.ceil(options.keepAliveMs / CHECKS_PER_SILENCE);
    this.timers = [
      setInterval(() => this.breakSilence(checkMs), checkMs).unref(),
      setInterval(() => void this.recheckAll(), RECHECK_MS).unref(),
    ];
    options.watch.onChange(() => void this.recheckAll());
  }

  /** The number of open streams, including ended ones whose last bytes are not taken yet. */
  get size(): number {
    return this.streams.size;
  }

  /** Returns how many streams are open: of the Thread, the user, the token, the organization and the process. */
  counts({ threadId, userKey, tokenId, organizationId }: StreamOwners): PerScope<number> {
    return {
      thread: this.perThread.of(threadId),
      user: userKey === null ? 0 : this.perUser.of(userKey),
      token: this.perToken.of(tokenId),
      organization: this.perOrganization.of(organizationId),
      process: this.size,
    };
  }

  open(response: ServerResponse, request: StreamRequest): void {
    const stream = new EventStream(response, request, this.options);
    this.streams.add(stream);
    metrics.streamsOpen.inc();
    this.count(request, 1);
    response.once('close', () => {
      this.streams.delete(stream);
      metrics.streamsOpen.dec();
      this.count(request, -1);
    });
    if (this.closed) stream.close();
  }

  /** Ends all streams, and each one that opens later, so that clients reconnect to another process. */
  close(): void {
    this.closed = true;
    this.timers.forEach((timer) => clearInterval(timer));
    for (const stream of this.streams) stream.close();
  }

  private count({ threadId, userKey, tokenId, organizationId }: StreamOwners, change: 1 | -1): void {
    this.perThread.add(threadId, change);
    if (userKey !== null) this.perUser.add(userKey, change);
    this.perToken.add(tokenId, change);
    this.perOrganization.add(organizationId, change);
  }

  private breakSilence(checkMs: number): void {
    const now = performance.now();
    // Half a check early is better than a whole one late.
    for (const stream of this.streams) stream.keepAlive(now, this.options.keepAliveMs - checkMs / 2);
  }

  private async recheckAll(): Promise<void> {
    if (this.rechecking || this.closed) return;
    this.rechecking = true;
    const groups = this.byCallerAndAgent();
    for (let i = 0; i < groups.length; i += PARALLEL_RECHECKS) {
      await Promise.all(groups.slice(i, i + PARALLEL_RECHECKS).map((group) => this.recheckGroup(group)));
    }
    this.rechecking = false;
  }

  /** Groups streams that share one access check. The Agent of a Thread never changes. */
  private byCallerAndAgent(): EventStream[][] {
    const groups = new Map<string, EventStream[]>();
    for (const stream of this.streams) {
      if (stream.isEnded) continue;
      const key = `${stream.agentId} ${stream.authorization}`;
      const group = groups.get(key);
      if (group) group.push(stream);
      else groups.set(key, [stream]);
    }
    return [...groups.values()];
  }

  private async recheckGroup(group: EventStream[]): Promise<void> {
    const { authorization, agentId } = group[0]!;
    const checkedAt = this.options.watch.moment();
    const access = await this.options.recheck(authorization, agentId);
    if (access === 'unknown') return;
    group.forEach((stream) => (access === 'allowed' ? stream.allow(checkedAt) : stream.refuse(access)));
  }
}

/** Counts by key. Forgets keys whose count is 0. */
class KeyedCount {
  private readonly counts = new Map<string, number>();

  of(key: string): number {
    return this.counts.get(key) ?? 0;
  }

  add(key: string, change: number): void {
    const count = this.of(key) + change;
    if (count === 0) this.counts.delete(key);
    else this.counts.set(key, count);
  }
}
