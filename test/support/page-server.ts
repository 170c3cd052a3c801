import { readFile } from 'node:fs/promises';
import { createServer, request, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import type { Caller } from './client.ts';

/** A request for a stream, as it went to the API. */
export interface StreamRequest {
  threadId: string;
  method: string;
  lastEventId: string | undefined;
  /** 0 before the response. */
  status: number;
  /** The response body so far. */
  text: string;
  /** Whether `breakInFrame` broke it. */
  isBroken: boolean;
}

const FETCH_EVENT_SOURCE = join(
  dirname(createRequire(import.meta.url).resolve('@microsoft/fetch-event-source/package.json')),
  'lib/esm',
);

/** The import map lets a page name the package as a bundler would. */
const PAGE = `<!doctype html><title>Client</title>
<script type="importmap">{"imports": {"@microsoft/fetch-event-source": "/package/index"}}</script>`;

/**
 * The server that docs/api/events.md asks for in front of browsers: it serves a page and its programs, and forwards
 * everything else to the API, with the token. It records the streams that pass.
 */
export class PageServer {
  readonly streams: StreamRequest[] = [];
  /** Thread ids, each with the number of the frame in which the Thread's next stream breaks. */
  private readonly breaks = new Map<string, number>();

  private constructor(
    private readonly server: Server,
    private readonly caller: Caller,
    private readonly programs: ReadonlyMap<string, string>,
  ) {}

  static async start(caller: Caller, programs: ReadonlyMap<string, string>): Promise<PageServer> {
    const server = createServer((incoming, outgoing) => void pages.answer(incoming, outgoing));
    const pages = new PageServer(server, caller, programs);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return pages;
  }

  get origin(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  /** Breaks the next stream of the Thread in its nth frame, between the id and the data. */
  breakInFrame(threadId: string, n: number): void {
    this.breaks.set(threadId, n);
  }

  streamsOf(threadId: string): StreamRequest[] {
    return this.streams.filter((stream) => stream.threadId === threadId);
  }

  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.server.close(resolve));
    this.server.closeAllConnections();
    await closed;
  }

  private async answer(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const [, folder = '', file = ''] = incoming.url!.split('/');
    if (folder === 'api') return this.forward(incoming, outgoing);
    const script = folder === 'package' ? await readFile(join(FETCH_EVENT_SOURCE, `${file}.js`), 'utf8') : undefined;
    const program = script ?? this.programs.get(folder);
    if (program !== undefined) outgoing.writeHead(200, { 'content-type': 'text/javascript' }).end(program);
    else if (folder === '') outgoing.writeHead(200, { 'content-type': 'text/html' }).end(PAGE);
    else outgoing.writeHead(folder === 'favicon.ico' ? 204 : 404).end();
  }

  private forward(incoming: IncomingMessage, outgoing: ServerResponse): void {
    const { method = 'GET', url = '', headers } = incoming;
    const { connection: _, ...kept } = headers;
    const record = this.record(incoming);
    const sent = request(new URL(url, this.caller.baseUrl), {
      method,
      headers: { authorization: `Bearer ${this.caller.token}`, ...kept },
    });
    sent.on('error', () => outgoing.destroy());
    sent.on('response', (answer) => {
      const { connection: __, 'keep-alive': ___, 'transfer-encoding': ____, ...passed } = answer.headers;
      record.status = answer.statusCode ?? 0;
      outgoing.writeHead(record.status, passed);
      outgoing.flushHeaders();
      answer.on('data', (bytes: Buffer) => this.pass(bytes, record, outgoing));
      answer.on('end', () => outgoing.end());
      answer.on('aborted', () => outgoing.destroy());
    });
    outgoing.on('close', () => sent.destroy());
    incoming.pipe(sent);
  }

  private pass(bytes: Buffer, record: StreamRequest, outgoing: ServerResponse): void {
    if (outgoing.destroyed || record.isBroken) return;
    const before = record.text.length;
    record.text += bytes.toString('latin1');
    const id = [...record.text.matchAll(/^id: \w+\n/gm)][(this.breaks.get(record.threadId) ?? 0) - 1];
    if (id === undefined) return void outgoing.write(bytes);
    this.breaks.delete(record.threadId);
    record.isBroken = true;
    record.text = record.text.slice(0, id.index + id[0].length);
    const { socket } = outgoing;
    outgoing.write(bytes.subarray(0, record.text.length - before), () => socket?.destroy());
  }

  private record({ url = '', method = '', headers }: IncomingMessage): StreamRequest {
    const { pathname, searchParams } = new URL(url, this.origin);
    const [, threadId] = /\/threads\/(\w+)\/events\/stream$/.exec(pathname) ?? [];
    const lastEventId = headers['last-event-id'] ?? searchParams.get('after');
    const asked = { threadId: threadId ?? '', method, lastEventId: lastEventId?.toString() };
    const record = { ...asked, status: 0, text: '', isBroken: false };
    if (threadId !== undefined) this.streams.push(record);
    return record;
  }
}
