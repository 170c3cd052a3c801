import type { BackendFactory, IQueueBackend } from 'bullmq';
import type { Logger } from '#platform';

/** What Redis and PostgreSQL differ in; `C` is what BullMQ calls a connection there. */
export interface BullBackend<C> {
  factory: BackendFactory<IQueueBackend, C>;
  /** Fails fast. */
  producer: C;
  /** For one worker; tries for ever. */
  connectConsumer(): C;
  prefix?: string;
  /** Known without asking; asking would wait for the connection. */
  isUnavailable(): boolean;
  close(): Promise<void>;
}

export interface BullRunQueueOptions<C> {
  name: string;
  backend: BullBackend<C>;
  logger: Logger;
}
