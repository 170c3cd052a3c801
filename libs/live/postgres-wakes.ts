import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from 'pg';
import type { Logger } from '#platform';
import type { WakeTransport } from './gathering-bus.ts';

export interface WakesOptions {
  url: string;
  channel: string;
  receive: (message: string) => void;
  logger: Logger;
}

const CONNECT_TIMEOUT_MS = 2_000;
const ANSWER_TIMEOUT_MS = 2_000;
/** Without a heartbeat, a connection that only listens would take minutes to notice a dead peer. */
const HEARTBEAT_MS = 5_000;
const FIRST_BACK_OFF_MS = 50;
const MAX_BACK_OFF_MS = 1_000;

/**
 * LISTEN and NOTIFY on one dedicated connection. Never notifies in the transaction of an append, because all committing notifiers
 * of the server share one lock. That was measured to cut appends to a quarter.
 */
export class PostgresWakes implements WakeTransport {
  /** PostgreSQL accepts fewer than 8,000 bytes in a notification. */
  readonly maxMessageLength = 7_900;
  private readonly closing = new AbortController();
  private readonly running: Promise<void>;
  /** Null while no connection listens. */
  private client: Client | null = null;

  constructor(private readonly options: WakesOptions) {
    this.running = this.stayConnected();
  }

  async send(messages: string[]): Promise<void> {
    const { client } = this;
    if (client === null) throw new Error('The connection for wake-ups is not open.');
    try {
      const text = 'select pg_notify($1, message) from unnest($2::text[]) as message';
      await client.query({ name: 'notify', text, values: [this.options.channel, messages] });
    } catch (error) {
      disconnect(client);
      throw error;
    }
  }

  isUp(): boolean {
    return this.client !== null;
  }

  async close(): Promise<void> {
    this.closing.abort();
    if (this.client) disconnect(this.client);
    await this.running;
  }

  private async stayConnected(): Promise<void> {
    const { signal } = this.closing;
    for (let failures = 0; !signal.aborted; failures++) {
      try {
        const client = await this.connect();
        failures = 0;
        if (!signal.aborted) await this.listen(client);
        else disconnect(client);
        if (!signal.aborted) this.options.logger.warn('wake-up connection lost');
      } catch (error) {
        if (failures === 0) this.options.logger.warn({ err: error }, 'wake-up connection failed');
      }
      const backOffMs = Math.min(FIRST_BACK_OFF_MS * 2 ** failures, MAX_BACK_OFF_MS);
      await sleep(backOffMs * (0.5 + Math.random() / 2), undefined, { signal }).catch(() => undefined);
    }
  }

  private async connect(): Promise<Client> {
    const { url, channel, receive } = this.options;
    const client = new Client({
      connectionString: url,
      application_name: 'spool live',
      keepAlive: true,
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      query_timeout: ANSWER_TIMEOUT_MS,
    });
    // Reported by 'end' and by the next query.
    client.on('error', () => undefined);
    client.on('notification', ({ payload }) => receive(payload ?? ''));
    try {
      await client.connect();
      await client.query(`listen ${client.escapeIdentifier(channel)}`);
      return client;
    } catch (error) {
      disconnect(client);
      throw error;
    }
  }

  /** Keeps the connection in use until it breaks. */
  private async listen(client: Client): Promise<void> {
    let heartbeat: NodeJS.Timeout | undefined;
    await new Promise<void>((broken) => {
      client.once('end', broken);
      const giveUp = (): void => {
        disconnect(client);
        broken();
      };
      heartbeat = setInterval(() => void client.query('select').catch(giveUp), HEARTBEAT_MS);
      this.client = client;
    });
    clearInterval(heartbeat);
    this.client = null;
  }
}

function disconnect(client: Client): void {
  client.end().catch(() => undefined);
}
