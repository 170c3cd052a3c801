/** Between the hand-written API and worker. */
export interface FloorQueue {
  redisUrl: string;
  /** Of the BullMQ queue and of the channel for wake-ups. */
  name: string;
}

/** What a job of the floor's carries. */
export interface FloorJob {
  threadId: string;
  runId: string;
}
