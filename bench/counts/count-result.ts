/** Bytes of payload, as the client of the connection sees them. */
export interface Traffic {
  sent: number;
  received: number;
}

/** The average cost of one operation. */
export interface CountResult {
  /** The operation: an accepted Thread, or a whole Run. */
  name: string;
  clients: number;
  operations: number;
  statements: number;
  transactions: number;
  /** Commands that Redis executed, including those inside BullMQ's scripts. */
  redisCommands: number;
  bytes: { postgres: Traffic; redis: Traffic; http: Traffic };
  /** Milliseconds of CPU. Null if the process does not run. */
  cpuMs: { api: number; worker: number | null; postgres: number; redis: number };
}
