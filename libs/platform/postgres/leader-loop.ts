import { Client } from 'pg';
import { isDatabaseAway } from './database.ts';
import type { Logger } from '../telemetry/logger.ts';

export interface LeaderLoopOptions {
  databaseUrl: string;
  /** The advisory lock that makes the leader; one number a loop, the same in every process. */
  lockId: number;
  /** For logs and `pg_stat_activity`. */
  name: string;
  /** One round of work; answers in how many milliseconds the next is wanted. Must stop soon when the signal aborts. */
  tick: (signal: AbortSignal) => Promise<number>;
  /** What else a tick needs that may be away, where the error says so. */
  outageOf?: (error: unknown) => string | null;
  logger: Logger;
  /** How often a follower tries for the lock, unless it is told that the lock is free. Milliseconds, default 1,000. */
  tryMs?: number;
  /** After how long a silence PostgreSQL ends the leader's session. Milliseconds, default 6,000. */
  silenceMs?: number;
}

/** Short, because the leader may be killed just before other leases end, and those Runs then wait for the next leader. */
const TRY_MS = 1_000;
/**
 * PostgreSQL ends a session that is silent for so long, and with it the lock. A killed leader's socket is closed by its
 * kernel; one that is stopped, blocked or behind a dead network would lead for ever without this.
 */
const SILENCE_MS = 6_000;
/** How often in this time a leader shows PostgreSQL that it is alive. */
const BEATS = 3;
/** How long an answer may take, as a part of this time. */
const ANSWER_PART = 0.5;
/** The pause after a failure to connect. */
const RECONNECT_MS = 2_000;
const CONNECT_TIMEOUT_MS = 2_000;
const MAX_BACK_OFF_MS = 1_000;
/** A tick that goes on failing is logged the first time, and then every so many. */
const LOG_EVERY = 30;

/**
 * Work that one process at a time does, whichever: the leader is who holds a session advisory lock, on a connection that
 * does nothing else. Two may believe to lead for some seconds, so a tick has to be harmless when done twice. One that
 * stops tells the others, so that in a rolling restart somebody leads all the time. (They could wait for the lock
 * instead; but a query that waits holds a snapshot, and what others update could not be pruned meanwhile.)
 */
export class LeaderLoop {
  private readonly stopping = new AbortController();
  private running: Promise<void> | null = null;
  private leading = false;
  private nudged = false;
  /** Whether a leader has said that it leads no longer, since the last try. */
  private vacant = false;
  private wake: () => void = () => undefined;

  constructor(private readonly options: LeaderLoopOptions) {}

  get isLeader(): boolean {
    return this.leading;
  }

  start(): void {
    this.running ??= this.run();
  }

  /** Ticks now, if leading, or again at once when a tick is under way. */
  nudge(): void {
    this.nudged = true;
    this.wake();
  }

  /** Waits for the tick under way, after telling it to stop. */
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
          if (this.stopping.signal.aborted) await this.tellOthers(client);
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
    // What it means is told by 'end' and by the next query.
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

  /** They have tried for the lock in vain: it is free now. */
  private async tellOthers(client: Client): Promise<void> {
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
    const away = isDatabaseAway(error) ? 'the database' : outageOf(error);
    if (away !== null) logger.warn({ err: error }, `${name} tick failed: ${away} is unavailable`);
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

/** Ends the session, and with it the lock; whether the server hears of it does not matter. */
function hangUp(client: Client): null {
  void client.end().catch(() => undefined);
  return null;
}
