import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { createBullBoard } from '@bull-board/api';
import { BullMQAdapter } from '@bull-board/api/bullMQAdapter';
import type {
  AppControllerRoute,
  AppViewRoute,
  BullBoardQueues,
  IServerAdapter,
  JobStatus,
  UIConfig,
} from '@bull-board/api/typings/app';
import type { Queue } from 'bullmq';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { untilAborted } from '#platform';
import type { QueueControls } from '#run-queue';
import { ApiError } from '../http/http-errors.ts';
import { BOARD_BAR, BOARD_FILES } from './board-bar.ts';
import { pageHeaders } from './page-policy.ts';
import { StaticFolder } from './static-folder.ts';

const UI = dirname(createRequire(join(import.meta.dirname, 'x.js')).resolve('@bull-board/ui/package.json'));

/** Its own have a hash in their name; texts, pictures and ours have not. */
const isHashed = (name: string): boolean => /\.[0-9a-f]{10}\.(js|css)$/.test(name);

/** It has one picture with style within it, that of Redis, of which this is the hash. */
const HEADERS = pageHeaders({ style: "'sha256-r2N1TB/gHbBtBZFKg7ejmq1acVSREzucTAEw6ga4hoU='", base: "'self'" });

const UI_CONFIG = {
  boardTitle: 'Spool queue',
  hideDocsLink: true,
  showMetrics: true,
  // Redis would be asked for all its clients at each look, which may be forbidden; who works is on the overview.
  showWorkers: false,
  locale: { lng: 'en-US' },
} satisfies UIConfig;

/**
 * Of its routes those that its page, as it is set up here, asks; it has others for what it would change, and for all clients of
 * Redis. By name, so that a new version adds none.
 */
const READS = new Set([
  '/api/redis/stats',
  '/api/queues',
  '/api/queues/:queueName/metrics',
  '/api/queues/:queueName/:jobId',
  '/api/queues/:queueName/:jobId/logs',
  '/api/queues/:queueName/:jobId/flow',
]);

/** More than anybody turns; Redis cannot count to some that the board would ask it for. */
const MAX_PAGE = 1_000_000;

/** BullMQ waits for a Redis that was away when the process began for as long as it is. Milliseconds. */
const PATIENCE_MS = 3_000;

/** The read-only queue of the board. Its pause is Spool's own. */
class ShownQueue extends BullMQAdapter {
  constructor(
    queue: Queue,
    private readonly controls: QueueControls,
  ) {
    super(queue, {
      readOnlyMode: true,
      allowRetries: false,
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

  /** No job is kept when it has ended, and none has a priority or children. */
  override getJobStatuses(): JobStatus[] {
    return ['active', 'waiting', 'delayed'];
  }
}

/** What Bull Board would have a web server do. */
class Wanted implements IServerAdapter {
  queues: BullBoardQueues = new Map();
  uiConfig: UIConfig = {};
  routes: AppControllerRoute[] = [];
  entry: AppViewRoute | null = null;

  setQueues(queues: BullBoardQueues): this {
    this.queues = queues;
    return this;
  }

  setUIConfig(uiConfig: UIConfig): this {
    this.uiConfig = uiConfig;
    return this;
  }

  setApiRoutes(routes: AppControllerRoute[]): this {
    this.routes = routes;
    return this;
  }

  setEntryRoute(entry: AppViewRoute): this {
    this.entry = entry;
    return this;
  }

  /** Files are served as those of the console are, and failures answered as everywhere. */
  setViewsPath(): this {
    return this;
  }

  setStaticPath(): this {
    return this;
  }

  setErrorHandler(): this {
    return this;
  }
}

/** Tells of a path whether it is the route's, and with which parameters. */
type Match = (path: string) => Record<string, string> | null;

export interface QueueBoardParts {
  queue: Queue;
  controls: QueueControls;
}

/** Bull Board on the queue of Runs. Loaded when it is first asked for. */
export class QueueBoard {
  private readonly files = new StaticFolder(join(UI, 'dist', 'static'), isHashed);
  private readonly wanted = new Wanted();
  private readonly pages: Match[];
  private readonly reads: { match: Match; route: AppControllerRoute }[];

  constructor(
    private readonly basePath: string,
    { queue, controls }: QueueBoardParts,
  ) {
    createBullBoard({
      queues: [new ShownQueue(queue, controls)],
      serverAdapter: this.wanted,
      options: { uiBasePath: UI, uiConfig: UI_CONFIG },
    });
    this.pages = [this.wanted.entry!.route].flat().map(matchOf);
    this.reads = this.wanted.routes
      .filter(({ method }) => [method].flat().includes('get'))
      .flatMap((route) => [route.route].flat().map((path) => ({ path, route })))
      .filter(({ path }) => READS.has(path))
      .map(({ path, route }) => ({ match: matchOf(path), route }));
  }

  /** Whether there is such a path below; nothing is sent otherwise. Throws ApiError where the queue is away. */
  async answer(name: string, request: FastifyRequest, reply: FastifyReply): Promise<boolean> {
    const own = BOARD_FILES.get(name);
    if (own !== undefined) {
      await reply.header('Cache-Control', 'no-cache').type(own.type).send(own.text);
      return true;
    }
    if (name.startsWith('static/')) return this.files.send(name.slice('static/'.length), request, reply);
    const path = `/${name}`;
    for (const { match, route } of this.reads) {
      const params = match(path);
      if (params === null) continue;
      await this.read(route, params, request, reply);
      return true;
    }
    if (!this.pages.some((match) => match(path) !== null)) return false;
    await reply
      .headers(HEADERS)
      .type('text/html; charset=utf-8')
      .send(await this.page());
    return true;
  }

  private async read(
    route: AppControllerRoute,
    params: Record<string, string>,
    { id: requestId, query, log }: FastifyRequest,
    reply: FastifyReply,
  ): Promise<void> {
    const { queues, uiConfig } = this.wanted;
    if (Number((query as { page?: unknown }).page ?? 1) > MAX_PAGE) throw malformed();
    const asked = { queues, uiConfig, params, query: query as Record<string, unknown>, body: {}, headers: {} };
    let answer;
    try {
      const asking = (async () => route.handler(asked))();
      answer = await untilAborted(asking, AbortSignal.timeout(PATIENCE_MS));
    } catch (error) {
      // It decodes some names itself.
      if (error instanceof URIError) throw malformed();
      log.warn({ requestId, err: error }, 'queue page failed');
      throw new ApiError('queue_unavailable', 'The queue does not answer. Try again.');
    }
    await reply
      .code(answer.status ?? 200)
      .header('Cache-Control', 'no-store')
      .send(answer.body);
  }

  /** Its page without what comes from elsewhere and without style of its own, which the policy forbids; and our bar. */
  private async page(): Promise<string> {
    const { params } = this.wanted.entry!.handler({ basePath: this.basePath, uiConfig: this.wanted.uiConfig });
    const template = await readFile(join(UI, 'dist', 'index.ejs'), 'utf8');
    return template
      .replaceAll(/<%[-=] (\w+) %>/g, (_, name: string) => params[name] ?? '')
      .replaceAll(/<link[^>]* href="https?:[^>]*>/g, '')
      .replaceAll(/<style>[^<]*<\/style>/g, '')
      .replaceAll(/ style="[^"]*"/g, '')
      .replace('</head>', `${BOARD_BAR.head}</head>`)
      .replace('</body>', `${BOARD_BAR.body}</body>`);
  }
}

const malformed = () => new ApiError('invalid_field', 'There is no such queue page.');

/** Of a route like `/queue/:queueName`. */
function matchOf(route: string): Match {
  const pattern = new RegExp(`^${route.replaceAll(/:(\w+)/g, '(?<$1>[^/]+)')}$`);
  return (path) => {
    const found = pattern.exec(path);
    return found && { ...found.groups };
  };
}
