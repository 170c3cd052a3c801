import { createBullBoard } from '@bull-board/api';
import { BullMQAdapter } from '@bull-board/api/bullMQAdapter';
import { FastifyAdapter } from '@bull-board/fastify';
import type { JobStatus, UIConfig } from '@bull-board/api/typings/app';
import type { Queue } from 'bullmq';
import Fastify, { type FastifyInstance } from 'fastify';
import type { QueueControls } from '#run-queue';

const UI_CONFIG = {
  boardTitle: 'Spool queue',
  hideDocsLink: true,
  miscLinks: [{ text: 'Console', url: '/console/' }],
  showMetrics: true,
  // Otherwise each look sends CLIENT LIST, which a Redis may forbid. The console's overview lists the workers.
  showWorkers: false,
  locale: { lng: 'en-US' },
} satisfies UIConfig;

/** The queue of Runs, read-only, with the pause of Spool instead of BullMQ's. */
class ShownQueue extends BullMQAdapter {
  constructor(
    queue: Queue,
    private readonly controls: QueueControls,
  ) {
    super(queue, {
      readOnlyMode: true,
      externalJobUrl: ({ data }) => ({
        displayText: 'Run',
        href: `/console/runs/${encodeURIComponent(String((data as { runId?: unknown }).runId))}`,
      }),
    });
  }

  override async isPaused(): Promise<boolean> {
    const { paused, pausedByTool } = await this.controls.read();
    return paused || pausedByTool;
  }

  /** Returns the statuses that jobs of Spool have. Spool keeps no ended job and sets no priority. */
  override getJobStatuses(): JobStatus[] {
    return ['active', 'waiting', 'delayed'];
  }
}

export interface QueueBoardParts {
  queue: Queue;
  controls: QueueControls;
  /** The path of the page. */
  prefix: string;
  /** The folder of Bull Board's page. */
  ui: string;
}

/** Returns a Fastify instance with Bull Board. The instance listens on no port. */
export function createQueueBoard({ queue, controls, prefix, ui }: QueueBoardParts): FastifyInstance {
  const serverAdapter = new FastifyAdapter();
  const options = { uiBasePath: ui, uiConfig: UI_CONFIG };
  createBullBoard({ queues: [new ShownQueue(queue, controls)], serverAdapter, options });
  const server = Fastify();
  void server.register(serverAdapter.registerPlugin(), { prefix });
  return server;
}
