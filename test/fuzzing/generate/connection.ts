import { connect, type Socket } from 'node:net';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';

export interface WireAnswer {
  status: number;
  /** Lower-case names; several values joined by `, `. */
  headers: Record<string, string>;
  body: Buffer;
  /** The body was still going on when it was cut off: a stream. */
  cut: boolean;
}

/** `closed`: without an answer. `silent`: neither answered nor closed in time. */
export type Outcome = WireAnswer | 'closed' | 'silent';

export interface Exchange {
  bytes: Buffer;
  method: string;
  /** Nothing more comes from the caller, and it says so. */
  endsEarly: boolean;
  /** Not to be used again. */
  last: boolean;
  timeoutMs: number;
}

/**
 * Connections to one server, kept alive between requests. By hand, because HTTP clients refuse to send what is wrong, and
 * tidy up what is odd.
 */
export class Connections {
  private readonly idle: Socket[] = [];
  private readonly address: { host: string; port: number };

  constructor(origin: string) {
    const { hostname, port } = new URL(origin);
    this.address = { host: hostname, port: Number(port) };
  }

  async send(exchange: Exchange): Promise<Outcome> {
    const kept = this.idle.pop();
    if (kept === undefined) return this.exchange(await this.open(), exchange);
    const outcome = await this.exchange(kept, exchange);
    // The server may close an idle connection just as it is used again; a fresh one tells the truth.
    return outcome === 'closed' ? this.exchange(await this.open(), exchange) : outcome;
  }

  close(): void {
    for (const socket of this.idle.splice(0)) socket.destroy();
  }

  private async open(): Promise<Socket> {
    const socket = connect(this.address).setNoDelay(true);
    await new Promise<void>((resolve, reject) => socket.once('connect', resolve).once('error', reject));
    return socket;
  }

  private exchange(socket: Socket, { bytes, method, endsEarly, last, timeoutMs }: Exchange): Promise<Outcome> {
    return new Promise((resolve) => {
      const reader = new AnswerReader(method);
      const finish = (outcome: Outcome, reusable: boolean): void => {
        clearTimeout(timer);
        socket.removeAllListeners();
        socket.on('error', () => undefined);
        if (reusable) this.keep(socket);
        else socket.destroy();
        resolve(outcome);
      };
      const timer = setTimeout(() => finish('silent', false), timeoutMs);
      socket.on('data', (chunk: Buffer) => {
        const answer = reader.read(chunk);
        if (answer) finish(answer, !last && !endsEarly && !answer.cut && answer.headers['connection'] !== 'close');
      });
      socket.on('error', () => finish(reader.end(), false));
      socket.on('close', () => finish(reader.end(), false));
      if (endsEarly) socket.end(bytes);
      else socket.write(bytes);
    });
  }

  private keep(socket: Socket): void {
    const forget = (): void => {
      const at = this.idle.indexOf(socket);
      if (at !== -1) this.idle.splice(at, 1);
    };
    socket.once('close', forget).on('data', () => socket.destroy());
    this.idle.push(socket);
  }
}

const HEAD_END = '\r\n\r\n';

function decode(body: Buffer, { 'content-encoding': encoding }: WireAnswer['headers']): Buffer {
  return encoding === 'br' ? brotliDecompressSync(body) : encoding === 'gzip' ? gunzipSync(body) : body;
}

/** Reads one answer, interim ones skipped. */
class AnswerReader {
  private data = Buffer.alloc(0);
  private head: Pick<WireAnswer, 'status' | 'headers'> | null = null;
  private readonly decoded: Buffer[] = [];

  constructor(private readonly method: string) {}

  /** The answer, once it is there; of a stream, once a first piece is. */
  read(chunk: Buffer): WireAnswer | null {
    this.data = Buffer.concat([this.data, chunk]);
    while (this.head === null) if (!this.readHead()) return null;
    const { status, headers } = this.head;
    if (this.method === 'HEAD' || status === 204 || status === 304)
      return { ...this.head, body: Buffer.alloc(0), cut: false };
    if (headers['transfer-encoding'] === 'chunked') return this.readChunks();
    const length = headers['content-length'];
    // Before HTTP/1.1, a stream comes without chunks.
    if (length === undefined && isStream(headers) && hasBegun(this.data)) {
      return { ...this.head, body: this.data, cut: true };
    }
    if (length === undefined || this.data.length < Number(length)) return null;
    return { ...this.head, body: decode(this.data.subarray(0, Number(length)), headers), cut: false };
  }

  /** What there is when the connection ends. */
  end(): Outcome {
    const { head } = this;
    if (head === null || head.headers['content-length'] !== undefined) return 'closed';
    if (head.headers['transfer-encoding'] === 'chunked') return 'closed';
    return { ...head, body: this.data, cut: false };
  }

  private readHead(): boolean {
    const end = this.data.indexOf(HEAD_END);
    if (end === -1) return false;
    const [first = '', ...lines] = this.data.subarray(0, end).toString('latin1').split('\r\n');
    this.data = this.data.subarray(end + HEAD_END.length);
    const status = Number(/^HTTP\/1\.[01] (\d{3})/.exec(first)?.[1]);
    if (status >= 100 && status < 200 && status !== 101) return true;
    const headers: Record<string, string> = {};
    for (const line of lines) {
      const [, name = '', value = ''] = /^([^:]+):\s*(.*)$/.exec(line) ?? [];
      const key = name.toLowerCase();
      headers[key] = key in headers ? `${headers[key]}, ${value}` : value;
    }
    this.head = { status, headers };
    return true;
  }

  private readChunks(): WireAnswer | null {
    for (;;) {
      const lineEnd = this.data.indexOf('\r\n');
      if (lineEnd === -1) break;
      const size = parseInt(this.data.subarray(0, lineEnd).toString('latin1'), 16);
      if (this.data.length < lineEnd + 2 + size + 2) break;
      if (size === 0) return this.answer(false);
      this.decoded.push(this.data.subarray(lineEnd + 2, lineEnd + 2 + size));
      this.data = this.data.subarray(lineEnd + 2 + size + 2);
    }
    return isStream(this.head!.headers) && hasBegun(Buffer.concat(this.decoded)) ? this.answer(true) : null;
  }

  private answer(cut: boolean): WireAnswer {
    return { ...this.head!, body: Buffer.concat(this.decoded), cut };
  }
}

/** Whether the first lines of a stream have come. */
const hasBegun = (body: Buffer): boolean => /\nretry: \d+\n/.test(body.toString('latin1'));

const isStream = (headers: Record<string, string>): boolean =>
  headers['content-type']?.startsWith('text/event-stream') === true;
