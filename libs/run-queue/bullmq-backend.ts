import type { BackendFactory, IQueueBackend } from 'bullmq';
import type { Logger } from '#platform';

/** The differences between Redis and PostgreSQL. `C` is the type of BullMQ's connection. */
export interface BullBackend<C> {
  factory: BackendFactory<IQueueBackend, C>;
  /** The connection to enqueue. Fails fast. */
  producer: C;
  /** Creates the connection of one worker. It reconnects forever. */
  connectConsumer(): C;
  prefix?: string;
  /** Returns the known state; a request would wait for the connection. */
  isUnavailable(): boolean;
  close(): Promise<void>;
}

export interface BullRunQueueOptions<C> {
  name: string;
  backend: BullBackend<C>;
  logger: Logger;
}
