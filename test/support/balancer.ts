import { Agent, createServer, request, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Caller } from './client.ts';

/** How often each pod is asked whether it is ready, and how long it may take to say so, milliseconds. */
const PROBE_MS = 100;
const PROBE_LIMIT_MS = 1_000;
/** A pod is out after so many failed looks in a row. Kubernetes waits for three. */
const MISSES = 2;

interface Target {
  origin: string;
  /** Keeps its connections, as balancers do. */
  agent: Agent;
  isReady: boolean;
  /** Failed probes in a row. */
  misses: number;
  /** True during a probe. A second probe at the same time would count one pause of the pod twice. */
  isProbed: boolean;
}

/**
 * A load balancer as they are: it looks at /health/ready, sends to those that were ready at the last look, in turn, on
 * connections that it keeps, and never a request twice. What goes wrong between it and a pod is in `failures`.
 */
export class Balancer {
  readonly failures: string[] = [];
  private targets: Target[] = [];
  private turn = 0;
  private readonly probing: NodeJS.Timeout;

  private constructor(private readonly server: Server) {
    this.probing = setInterval(() => this.targets.forEach((target) => void this.probe(target)), PROBE_MS);
  }

  static async start(): Promise<Balancer> {
    const server = createServer((incoming, outgoing) => balancer.forward(incoming, outgoing));
    const balancer = new Balancer(server);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return balancer;
  }

  /** A caller of one of the pods, by way of the balancer. */
  through(caller: Caller): Caller {
    const url = new URL(caller.baseUrl);
    url.port = String((this.server.address() as AddressInfo).port);
    return { ...caller, baseUrl: url.href };
  }

  /** Resolves when requests are sent to it too. */
  async add({ baseUrl }: Caller): Promise<void> {
    const kept = { origin: new URL(baseUrl).origin, agent: new Agent({ keepAlive: true }) };
    const target: Target = { ...kept, isReady: false, misses: 0, isProbed: false };
    while (!target.isReady) await this.probe(target);
    this.targets.push(target);
  }

  /** Of pods that are gone. */
  remove({ baseUrl }: Caller): void {
    const { origin } = new URL(baseUrl);
    this.targets.find((target) => target.origin === origin)?.agent.destroy();
    this.targets = this.targets.filter((target) => target.origin !== origin);
  }

  async close(): Promise<void> {
    clearInterval(this.probing);
    this.targets.forEach(({ agent }) => agent.destroy());
    const closed = new Promise((resolve) => this.server.close(resolve));
    this.server.closeAllConnections();
    await closed;
  }

  private async probe(target: Target): Promise<void> {
    if (target.isProbed) return;
    target.isProbed = true;
    const signal = AbortSignal.timeout(PROBE_LIMIT_MS);
    const isReady = await fetch(`${target.origin}/health/ready`, { signal }).then(
      async (response) => (await response.arrayBuffer(), response.ok),
      () => false,
    );
    target.isProbed = false;
    target.misses = isReady ? 0 : target.misses + 1;
    target.isReady = isReady || (target.isReady && target.misses < MISSES);
  }

  private forward(incoming: IncomingMessage, outgoing: ServerResponse): void {
    const ready = this.targets.filter(({ isReady }) => isReady);
    const target = ready[this.turn++ % ready.length];
    const what = `${incoming.method} ${incoming.url}`;
    const fail = (why: string): void => {
      // A client that has left has got what it wanted.
      if (outgoing.destroyed) return;
      this.failures.push(`${what}: ${why}`);
      outgoing.destroy();
    };
    if (target === undefined) return fail('no pod is ready');
    const { connection: _, ...headers } = incoming.headers;
    const { origin, agent } = target;
    const sent = request(`${origin}${incoming.url}`, { method: incoming.method ?? 'GET', headers, agent });
    sent.on('error', (error) => fail(`${origin} ${error.message}`));
    sent.on('response', (answer) => {
      const { connection: __, 'keep-alive': ___, 'transfer-encoding': ____, ...kept } = answer.headers;
      outgoing.writeHead(answer.statusCode ?? 502, kept);
      outgoing.flushHeaders();
      answer.on('aborted', () => fail(`${origin} has broken off its answer`));
      answer.pipe(outgoing);
    });
    outgoing.on('close', () => sent.destroy());
    incoming.pipe(sent);
  }
}
