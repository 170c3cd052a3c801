import type { ServerResponse } from 'node:http';
import type { ApiError } from '../http/http-errors.ts';
import type { PerScope } from './stream-limits.ts';
import { EventStream, type StreamRequest, type StreamSurroundings } from './event-stream.ts';
import { metrics } from '../metrics.ts';

/** Whether a caller may read an agent's Threads: why not, or that nobody can tell now. */
export type ReadStanding = 'allowed' | 'unknown' | ApiError;

export interface OpenStreamsOptions extends StreamSurroundings {
  /** Silence after which a keepalive is sent. */
  keepAliveMs: number;
  /** Must not reject. */
  recheck: (authorization: string | undefined, agentId: string) => Promise<ReadStanding>;
}

/**
 * A revocation ends streams within 5 s (docs/spec/decisions.md#stream): the watch notices it within a second and has
 * all asked again at once; this is for expiry, and for when nobody can watch. It costs no query as long as what is
 * remembered holds.
 */
const RECHECK_MS = 1_000;
const RECHECKS_AT_ONCE = 8;
/** How often a silence is looked for, within one. */
const LOOKS_A_SILENCE = 15;

/** The Thread, token and organization that a stream counts for. A Thread belongs to the organization of its Agent. */
export type StreamOwners = Pick<StreamRequest, 'threadId' | 'tokenId' | 'organizationId'>;

/** All streams of the process; what each needs from time to time is done for all by one sweep. */
export class OpenStreams {
  private readonly streams = new Set<EventStream>();
  private readonly perThread = new KeyedCount();
  private readonly perToken = new KeyedCount();
  private readonly perOrganization = new KeyedCount();
  private readonly timers: NodeJS.Timeout[];
  private rechecking = false;
  private closed = false;

  constructor(private readonly options: OpenStreamsOptions) {
    const lookMs = Math.ceil(options.keepAliveMs / LOOKS_A_SILENCE);
    this.timers = [
      setInterval(() => this.breakSilence(lookMs), lookMs).unref(),
      setInterval(() => void this.recheckAll(), RECHECK_MS).unref(),
    ];
    options.watch.onChange(() => void this.recheckAll());
  }

  /** How many are open, those included that end but have not been taken to the end. */
  get size(): number {
    return this.streams.size;
  }

  /** Returns the numbers of open streams: of the Thread, the token, the organization and the process. */
  counts({ threadId, tokenId, organizationId }: StreamOwners): PerScope<number> {
    return {
      thread: this.perThread.of(threadId),
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

  /** For good: streams end, so that clients move on to another process; one that still comes is ended too. */
  close(): void {
    this.closed = true;
    this.timers.forEach((timer) => clearInterval(timer));
    for (const stream of this.streams) stream.close();
  }

  private count({ threadId, tokenId, organizationId }: StreamOwners, change: 1 | -1): void {
    this.perThread.add(threadId, change);
    this.perToken.add(tokenId, change);
    this.perOrganization.add(organizationId, change);
  }

  private breakSilence(lookMs: number): void {
    const now = performance.now();
    // Rather a little early than a look late.
    for (const stream of this.streams) stream.keepAlive(now, this.options.keepAliveMs - lookMs / 2);
  }

  private async recheckAll(): Promise<void> {
    if (this.rechecking || this.closed) return;
    this.rechecking = true;
    const groups = this.byCallerAndAgent();
    for (let i = 0; i < groups.length; i += RECHECKS_AT_ONCE) {
      await Promise.all(groups.slice(i, i + RECHECKS_AT_ONCE).map((group) => this.recheckGroup(group)));
    }
    this.rechecking = false;
  }

  /** Streams that the same answer is about: whose Thread it is does not change. */
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
    const askedAt = this.options.watch.moment();
    const standing = await this.options.recheck(authorization, agentId);
    if (standing === 'unknown') return;
    group.forEach((stream) => (standing === 'allowed' ? stream.allow(askedAt) : stream.refuse(standing)));
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
