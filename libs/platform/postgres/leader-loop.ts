import { Client } from 'pg';
import { isDatabaseUnavailable } from './database.ts';
import type { Logger } from '../telemetry/logger.ts';

export interface LeaderLoopOptions {
  databaseUrl: string;
  /** The advisory lock of the leader: one number for each loop, the same in every process. */
  lockId: number;
  /** For logs and `pg_stat_activity`. */
  name: string;
  /** Does one round of work. Returns the milliseconds until the next one. Must stop soon when the signal aborts. */
  tick: (signal: AbortSignal) => Promise<number>;
  /** Returns the name of another dependency that is unavailable according to the error, or null. */
  outageOf?: (error: unknown) => string | null;
  logger: Logger;
  /** How often a follower tries the lock without a notification that it is free. Milliseconds, default 1,000. */
  tryMs?: number;
  /** The silence after which PostgreSQL ends the leader's session. Milliseconds, default 6,000. */
  silenceMs?: number;
}

/** Short, because the leader may be killed just before other leases end, and those Runs then wait for the next leader. */
const TRY_MS = 1_000;
/**
 * PostgreSQL ends a session after this silence, and releases its lock. The kernel closes the socket of a killed leader. Without
 * this limit, a leader that is stopped, blocked or behind a dead network would keep the lock forever.
 */
const SILENCE_MS = 6_000;
/** The number of heartbeats that a leader sends in this time. */
const BEATS = 3;
/** The query timeout, as a fraction of this time. */
const ANSWER_PART = 0.5;
/** The pause after a failure to connect. */
const RECONNECT_MS = 2_000;
const CONNECT_TIMEOUT_MS = 2_000;
const MAX_BACK_OFF_MS = 1_000;
/** The first of several consecutive failures is logged, and then one in this many. */
const LOG_EVERY = 30;

/**
 * Repeats work in one process at a time: the leader, which holds a session advisory lock on a dedicated connection. For some
 * seconds two processes may believe that they lead, so repeating a tick must be harmless. A leader that stops notifies the
 * followers, so that a rolling restart leaves no gap. Followers do not wait for the lock, because a waiting query holds a
 * snapshot and so prevents the pruning of updated rows.
 */
export class LeaderLoop {
  private readonly stopping = new AbortController();
  private running: Promise<void> | null = null;
  private leading = false;
  private nudged = false;
  /** Whether a leader has announced its end since the last try. */
  private vacant = false;
  private wake: () => void = () => undefined;

  constructor(private readonly options: LeaderLoopOptions) {}

  get isLeader(): boolean {
    return this.leading;
  }

  start(): void {
    this.running ??= this.run();
  }

  /** Ticks now if this process leads. During a tick, the next one follows immediately. */
  nudge(): void {
    this.nudged = true;
    this.wake();
  }

  /** Aborts the tick in progress and waits for its end. */
  async stop(): Promise<void> {
    this.stopping.abort();
    this.wake();
    await this.running;
  }

  private async run(): Promise<void> {
    let client: Client | null = null;
    while (!this.stopping.signal.aborted) {
      try {
        client ??= await this.connect();
        this.vacant = false;
        if (await this.tryLock(client)) {
          await this.lead(client);
          if (this.stopping.signal.aborted) await this.notifyOthers(client);
          client = hangUp(client);
        } else if (!this.vacant) await this.pause(this.options.tryMs ?? TRY_MS);
      } catch (error) {
        this.options.logger.warn({ err: error }, `${this.options.name} connection failed`);
        client = client && hangUp(client);
        await this.pause(RECONNECT_MS);
      }
    }
    if (client) hangUp(client);
  }

  private async connect(): Promise<Client> {
    const client = new Client({
      connectionString: this.options.databaseUrl,
      application_name: `spool ${this.options.name}`,
      keepAlive: true,
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      query_timeout: this.silenceMs * ANSWER_PART,
      options: `-c idle_session_timeout=${this.silenceMs}`,
    });
    // The 'end' event and the next query report it.
    client.on('error', () => undefined);
    client.on('notification', () => {
      this.vacant = true;
      this.wake();
    });
    await client.connect();
    await client.query(`listen ${this.channel}`);
    return client;
  }

  private get silenceMs(): number {
    return this.options.silenceMs ?? SILENCE_MS;
  }

  private get channel(): string {
    return `spool_leader_${this.options.lockId}`;
  }

  /** Releases the lock and notifies the followers, so that one of them takes it. */
  private async notifyOthers(client: Client): Promise<void> {
    const { lockId } = this.options;
    await client
      .query('select pg_advisory_unlock($1), pg_notify($2, null)', [lockId, this.channel])
      .catch(() => undefined);
  }

  private async tryLock(client: Client): Promise<boolean> {
    const { rows } = await client.query<{ held: boolean }>('select pg_try_advisory_lock($1) as held', [
      this.options.lockId,
    ]);
    return rows[0]?.held === true;
  }

  /** Leads until the connection breaks or the loop is stopped. */
  private async lead(client: Client): Promise<void> {
    const { name, logger } = this.options;
    const lost = new AbortController();
    const lose = (): void => {
      this.leading = false;
      lost.abort();
      this.wake();
    };
    this.stopping.signal.addEventListener('abort', lose);
    client.once('end', lose);
    const beat = setInterval(() => void client.query('select 1').catch(lose), this.silenceMs / BEATS);
    this.leading = !this.stopping.signal.aborted;
    logger.info(`${name} became leader`);
    try {
      if (this.leading) await this.tickUntil(lost.signal);
    } finally {
      clearInterval(beat);
      this.leading = false;
      this.stopping.signal.removeEventListener('abort', lose);
      client.off('end', lose);
      logger.info(`${name} stopped leading`);
    }
  }

  private async tickUntil(lost: AbortSignal): Promise<void> {
    let failures = 0;
    while (!lost.aborted) {
      this.nudged = false;
      const pauseMs = await this.options.tick(lost).then(
        (ms) => {
          failures = 0;
          return ms;
        },
        (error: unknown) => {
          if (!lost.aborted && failures % LOG_EVERY === 0) this.logFailure(error);
          return Math.min(MAX_BACK_OFF_MS, 100 * 2 ** failures++);
        },
      );
      // A nudge must not turn a failing tick into a busy loop.
      if (!lost.aborted && !(this.nudged && failures === 0)) await this.pause(pauseMs);
    }
  }

  private logFailure(error: unknown): void {
    const { name, logger, outageOf = () => null } = this.options;
    const outage = isDatabaseUnavailable(error) ? 'the database' : outageOf(error);
    if (outage !== null) logger.warn({ err: error }, `${name} tick failed: ${outage} is unavailable`);
    else logger.error({ err: error }, `${name} tick failed`);
  }

  private async pause(ms: number): Promise<void> {
    if (this.stopping.signal.aborted) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    this.wake = () => undefined;
  }
}

/** Ends the session and releases its lock. Ignores failures. */
function hangUp(client: Client): null {
  void client.end().catch(() => undefined);
  return null;
}
