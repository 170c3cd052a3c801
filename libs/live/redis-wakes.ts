import type { Redis } from 'ioredis';
import { connectRedisNode, FAIL_FAST, retryEvery } from '#platform';
import type { WakeTransport } from './gathering-bus.ts';
import type { WakesOptions } from './postgres-wakes.ts';

/** Without a heartbeat, a connection that only listens would take minutes to notice a dead peer. */
const HEARTBEAT_MS = 5_000;

/** Fails fast, because a wake-up is useless later. */
const OPTIONS = { ...FAIL_FAST, retryStrategy: retryEvery(1_000), autoResubscribe: false };

/**
 * PUBLISH on one connection and SUBSCRIBE on another, as Redis requires. Pub/sub ignores database numbers. A cluster
 * forwards messages from one node to all.
 */
export class RedisWakes implements WakeTransport {
  /** Holds the largest entries of some Threads. Redis itself allows far more. */
  readonly maxMessageLength = 64 * 1024;
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
        .catch((error: unknown) => logger.warn({ err: error }, 'wake-up subscription failed'));
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
    const redis = connectRedisNode(this.options.url, OPTIONS);
    let isLogged = false;
    redis.on('ready', () => (isLogged = false));
    redis.on('error', (error) => {
      if (!isLogged) this.options.logger.warn({ err: error, role }, 'wake-up connection to Redis failed');
      isLogged = true;
    });
    return redis;
  }
}
