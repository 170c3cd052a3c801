import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Config } from '../process/config.ts';
import type { Logger } from './logger.ts';
import { StartError } from '../process/main-process.ts';
import { collectProcessMetrics, scrape } from './metrics.ts';

/** Whether a process can do its work, for those who send work to it. */
export interface Readiness {
  /**
   * `degraded`: all work is done, some of it late. `away`: no work can be done. `starting`: not yet ready. `stopping`: shutting
   * down.
   */
  status: 'ready' | 'degraded' | 'away' | 'starting' | 'stopping';
  /** Each failure, its start and its consequence; empty if there is none. */
  reasons: string[];
}

/** Returns the HTTP status for a readiness. */
export const readinessCode = ({ status }: Pick<Readiness, 'status'>): 200 | 503 =>
  status === 'ready' || status === 'degraded' ? 200 : 503;

/** The timeout of a request, after which its connection is closed. Milliseconds. */
const TIMEOUT_MS = 5_000;

/**
 * Serves `/metrics`, `/health/live` and `/health/ready` on a separate port (METRICS_PORT), without a token. Depends on nothing
 * that it reports, so it responds before the process has started and until it has ended.
 */
export class MetricsListener {
  private readiness: () => Promise<Readiness> = () =>
    Promise.resolve({ status: 'starting', reasons: ['The process is starting.'] });

  private constructor(private readonly server: Server | null) {
    server?.on('request', (request: IncomingMessage, response: ServerResponse) => void this.answer(request, response));
  }

  /** Listens if METRICS_PORT is set. Throws StartError if the port is not available. */
  static async open({ METRICS_PORT: port, METRICS_HOST: host }: Config, logger: Logger): Promise<MetricsListener> {
    collectProcessMetrics();
    if (port === undefined) return new MetricsListener(null);
    const server = createServer({ requestTimeout: TIMEOUT_MS });
    const listener = new MetricsListener(server);
    await new Promise<void>((resolve, reject) => {
      server.once('error', (error: NodeJS.ErrnoException) =>
        reject(new StartError(`Cannot listen on METRICS_PORT ${port} of ${host} (${error.code ?? error.message}).`)),
      );
      server.listen(port, host, resolve);
    });
    const { port: given, address, family } = server.address() as AddressInfo;
    const url = `http://${family === 'IPv6' ? `[${address}]` : address}:${given}`;
    logger.info({ url }, 'metrics ready');
    return listener;
  }

  /** Sets the function that /health/ready calls. It must not reject. */
  reportReadiness(readiness: () => Promise<Readiness>): void {
    this.readiness = readiness;
  }

  async close(): Promise<void> {
    const { server } = this;
    if (server === null) return;
    await new Promise<void>((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  }

  private async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const isRead = request.method === 'GET' || request.method === 'HEAD';
    const [path] = (request.url ?? '').split('?');
    if (!isRead) return send(response, 405, { error: 'Method not allowed; use GET or HEAD.' });
    switch (path) {
      case '/metrics': {
        const { contentType, text } = await scrape();
        response.writeHead(200, { 'Content-Type': contentType }).end(text);
        return;
      }
      case '/health/live':
        return send(response, 200, { status: 'ok' });
      case '/health/ready': {
        const readiness = await this.readiness();
        return send(response, readinessCode(readiness), readiness);
      }
      default:
        return send(response, 404, { error: 'Not found; use /metrics, /health/live or /health/ready.' });
    }
  }
}

function send(response: ServerResponse, code: number, body: object): void {
  response.writeHead(code, { 'Content-Type': 'application/json; charset=utf-8' }).end(JSON.stringify(body));
}
