import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { createBullBoard } from '@bull-board/api';
import { BullMQAdapter } from '@bull-board/api/bullMQAdapter';
import { FastifyAdapter } from '@bull-board/fastify';
import type { JobStatus, UIConfig } from '@bull-board/api/typings/app';
import type { Queue } from 'bullmq';
import Fastify from 'fastify';
import type { QueueControls } from '#run-queue';
import { StaticFolder } from './static-folder.ts';

const UI = dirname(createRequire(join(import.meta.dirname, 'x.js')).resolve('@bull-board/ui/package.json'));

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
}

/** Returns the files of Bull Board's page, and a Fastify instance with the rest of it. The instance listens on no port. */
export function createQueueBoard(prefix: string, { queue, controls }: QueueBoardParts) {
  const serverAdapter = new FastifyAdapter();
  const options = { uiBasePath: UI, uiConfig: UI_CONFIG };
  createBullBoard({ queues: [new ShownQueue(queue, controls)], serverAdapter, options });
  const server = Fastify();
  void server.register(serverAdapter.registerPlugin(), { prefix });
  // Scripts and styles have a hash in their names.
  const files = new StaticFolder(join(UI, 'dist', 'static'), (name) => /\.[0-9a-f]{10}\.(js|css)$/.test(name));
  return { server, files };
}
