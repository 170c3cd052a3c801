import { Redis, type RedisOptions } from 'ioredis';
import type { WakeTransport } from './gathering-bus.ts';
import type { WakesOptions } from './postgres-wakes.ts';

const CONNECT_TIMEOUT_MS = 2_000;
/** Who does not answer for so long is hung up on, so that nothing piles up behind a silent server. */
const SILENCE_MS = 1_000;
/** A connection that only listens would not notice for minutes that its other end is gone. */
const HEARTBEAT_MS = 5_000;
const MAX_BACK_OFF_MS = 1_000;

/** No queue in memory and no second try: a wake-up is worth sending now or not at all. */
const OPTIONS = {
  connectTimeout: CONNECT_TIMEOUT_MS,
  socketTimeout: SILENCE_MS,
  keepAlive: 10_000,
  retryStrategy: (times) => Math.min(50 * times, MAX_BACK_OFF_MS),
  enableOfflineQueue: false,
  maxRetriesPerRequest: 0,
  autoResendUnfulfilledCommands: false,
  autoResubscribe: false,
} satisfies RedisOptions;

/** PUBLISH on one connection, SUBSCRIBE on another, which Redis demands. Pub/sub ignores database numbers. */
export class RedisWakes implements WakeTransport {
  private readonly publisher: Redis;
  private readonly subscriber: Redis;
  private readonly heartbeat: NodeJS.Timeout;

  constructor(private readonly options: WakesOptions) {
    const { channel, receive, logger } = options;
    this.publisher = this.connect('publisher');
    this.subscriber = this.connect('subscriber');
    this.subscriber.on('ready', () => {
      this.subscriber
        .subscribe(channel)
        .catch((error: unknown) => logger.warn({ err: error }, 'live: cannot subscribe to wake-ups'));
    });
    this.subscriber.on('message', (_channel: string, message: string) => receive(message));
    this.heartbeat = setInterval(() => {
      if (this.subscriber.status === 'ready') this.subscriber.ping().catch(() => undefined);
    }, HEARTBEAT_MS);
  }

  async send(messages: string[]): Promise<void> {
    const pipeline = this.publisher.pipeline();
    for (const message of messages) pipeline.publish(this.options.channel, message);
    await pipeline.exec();
  }

  isUp(): boolean {
    return this.publisher.status === 'ready' && this.subscriber.status === 'ready';
  }

  async close(): Promise<void> {
    clearInterval(this.heartbeat);
    this.publisher.disconnect();
    this.subscriber.disconnect();
  }

  private connect(role: 'publisher' | 'subscriber'): Redis {
    const redis = new Redis(this.options.url, OPTIONS);
    let told = false;
    redis.on('ready', () => (told = false));
    redis.on('error', (error) => {
      if (!told) this.options.logger.warn({ err: error, role }, 'live: the connection to Redis broke');
      told = true;
    });
    return redis;
  }
}
