import { createServer } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { eventually } from '#testing';

/** A span as it arrived, as far as tests look at it. */
export interface ReceivedSpan {
  service: string;
  name: string;
  traceId: string;
  spanId: string;
  parentSpanId: string;
  kind: number;
  isError: boolean;
  attributes: Record<string, string | number>;
  links: string[];
}

interface OtlpAttribute {
  key: string;
  value: { stringValue?: string; intValue?: number; doubleValue?: number };
}

interface OtlpSpan extends Omit<ReceivedSpan, 'attributes' | 'links' | 'isError' | 'service'> {
  attributes: OtlpAttribute[];
  links?: { traceId: string }[];
  status: { code: number };
}

interface OtlpRequest {
  resourceSpans: { resource: { attributes: OtlpAttribute[] }; scopeSpans: { spans: OtlpSpan[] }[] }[];
}

/** A collector that takes OTLP over HTTP as JSON, and keeps it. */
export class TraceCollector {
  readonly spans: ReceivedSpan[] = [];
  /** Every byte that came: paths, headers and bodies. */
  received = '';
  requests = 0;
  /** What becomes of requests: taken, refused, or never answered. */
  mood: 'takes' | 'refuses' | 'silent' = 'takes';
  private readonly server = createServer((request, response) => {
    this.requests++;
    if (this.mood === 'silent') return;
    if (this.mood === 'refuses') return void response.writeHead(400).end();
    const pieces: Buffer[] = [];
    request.on('data', (piece: Buffer) => pieces.push(piece));
    request.on('end', () => {
      this.take(`${request.url} ${JSON.stringify(request.headers)}`, Buffer.concat(pieces).toString());
      response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
    });
  });

  static async start(): Promise<TraceCollector> {
    const collector = new TraceCollector();
    collector.server.listen(0, '127.0.0.1');
    await once(collector.server, 'listening');
    return collector;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  /** All spans of the trace, once those that are named are among them. */
  async traceWith(traceId: string, ...names: string[]): Promise<ReceivedSpan[]> {
    const spans = (): ReceivedSpan[] => this.spans.filter((span) => span.traceId === traceId);
    const have = (): string[] => spans().map(({ name }) => name);
    const what = `the trace has ${names.join(', ')}`;
    await eventually(
      () => {
        const missing = names.filter((name) => !have().includes(name));
        if (missing.length > 0) throw new Error(`${missing.join(', ')} are missing in ${have().join(', ')}`);
        return true;
      },
      { what, timeoutMs: 30_000 },
    );
    return spans();
  }

  async close(): Promise<void> {
    this.server.closeAllConnections();
    this.server.close();
    await once(this.server, 'close');
  }

  private take(head: string, body: string): void {
    this.received += `${head}\n${body}\n`;
    for (const { resource, scopeSpans } of (JSON.parse(body) as OtlpRequest).resourceSpans) {
      const service = String(valuesOf(resource.attributes)['service.name']);
      for (const { attributes, links = [], status, ...span } of scopeSpans.flatMap(({ spans }) => spans)) {
        const more = { isError: status.code === 2, links: links.map(({ traceId }) => traceId) };
        this.spans.push({ ...span, service, attributes: valuesOf(attributes), ...more });
      }
    }
  }
}

function valuesOf(attributes: readonly OtlpAttribute[]): Record<string, string | number> {
  return Object.fromEntries(
    attributes.map(({ key, value: { stringValue, intValue, doubleValue } }) => [
      key,
      stringValue ?? intValue ?? doubleValue ?? '',
    ]),
  );
}
