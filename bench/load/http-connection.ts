import { connect, type Socket } from 'node:net';

export interface HttpRequest {
  headers: string[];
  body?: string;
  /** The status that the caller expects. Any other status rejects the request. */
  expect: number;
  /** Receives the chunks of the body as they arrive. */
  onPiece?: (text: string) => void;
}

interface Answer {
  status: number;
  /** Empty if `onPiece` received the chunks. */
  body: string;
  left: number | 'chunks';
}

interface Pending {
  /** Method and path, for the error message. */
  asked: string;
  expect: number;
  onPiece: ((text: string) => void) | undefined;
  resolve: (body: string) => void;
  reject: (error: Error) => void;
}

/** How much of an unexpected response the error message shows. */
const SHOWN_CHARACTERS = 300;

/**
 * One keep-alive connection that asks one thing at a time. Only as much of HTTP/1.1 as our servers speak, and ASCII only:
 * the load shares the machine with what it measures, and Node's own client takes several times as long.
 */
export class HttpConnection {
  private buffer = '';
  private pending: Pending | null = null;
  private answer: Answer | null = null;
  private willClose = false;

  private constructor(
    private readonly socket: Socket,
    private readonly host: string,
  ) {
    socket.setNoDelay(true).setEncoding('latin1');
    socket.on('data', (text) => this.read(text as unknown as string));
    socket.on('error', (error) => this.fail(error));
    socket.on('close', () => this.fail(new Error('the server closed the connection')));
  }

  static async open(origin: string): Promise<HttpConnection> {
    const { hostname, port, host } = new URL(origin);
    const socket = connect(Number(port), hostname);
    await new Promise<void>((resolve, reject) => socket.once('connect', resolve).once('error', reject));
    return new HttpConnection(socket, host);
  }

  /** Whether it can be asked once more. */
  get isOpen(): boolean {
    return !this.willClose && !this.socket.destroyed;
  }

  /** All bytes of HTTP that have passed so far. */
  get bytes(): { sent: number; received: number } {
    return { sent: this.socket.bytesWritten, received: this.socket.bytesRead };
  }

  /**
   * Sends a request and returns the body, or an empty text when `onPiece` took it.
   * Throws when the status is not the expected one, and when the connection breaks.
   */
  send(method: 'GET' | 'POST', path: string, { headers, body = '', expect, onPiece }: HttpRequest): Promise<string> {
    const length = body === '' ? [] : ['Content-Type: application/json', `Content-Length: ${body.length}`];
    const head = [`${method} ${path} HTTP/1.1`, `Host: ${this.host}`, ...headers, ...length].join('\r\n');
    return new Promise((resolve, reject) => {
      this.pending = { asked: `${method} ${path}`, expect, onPiece, resolve, reject };
      this.socket.write(`${head}\r\n\r\n${body}`, 'latin1');
    });
  }

  close(): void {
    this.pending = null;
    this.socket.destroy();
  }

  private fail(error: Error): void {
    this.pending?.reject(error);
    this.pending = null;
  }

  private read(text: string): void {
    this.buffer += text;
    while (this.readHead() || this.readBody());
  }

  private readHead(): boolean {
    const end = this.buffer.indexOf('\r\n\r\n');
    if (this.answer !== null || end === -1) return false;
    const head = this.buffer.slice(0, end);
    this.buffer = this.buffer.slice(end + 4);
    this.willClose ||= /\r\nconnection: *close/i.test(head);
    const [, length] = /\r\ncontent-length: *(\d+)/i.exec(head) ?? [];
    this.answer = {
      status: Number(head.slice(9, 12)),
      body: '',
      left: length === undefined ? 'chunks' : Number(length),
    };
    return true;
  }

  /** Takes the body, or its next chunk, from the buffer. */
  private readBody(): boolean {
    if (this.answer === null) return false;
    const { left } = this.answer;
    if (left !== 'chunks') return this.buffer.length >= left && this.take(0, left, 0);
    const line = this.buffer.indexOf('\r\n');
    if (line === -1) return false;
    const size = parseInt(this.buffer, 16);
    if (this.buffer.length < line + 2 + size + 2) return false;
    return this.take(line + 2, size, 2);
  }

  /** Takes `size` characters at `start`; a chunked body ends with none. Returns whether more may follow. */
  private take(start: number, size: number, trailer: number): boolean {
    const { answer, pending } = this;
    if (answer === null) return false;
    const piece = this.buffer.slice(start, start + size);
    this.buffer = this.buffer.slice(start + size + trailer);
    const isExpected = answer.status === pending?.expect;
    if (isExpected && pending.onPiece !== undefined) {
      if (size > 0) pending.onPiece(piece);
    } else answer.body += piece;
    if (answer.left === 'chunks' && size > 0) return true;
    this.answer = null;
    this.pending = null;
    if (isExpected) pending.resolve(answer.body);
    else pending?.reject(unexpected(pending, answer));
    return this.buffer !== '';
  }
}

function unexpected({ asked, expect }: Pending, { status, body }: Answer): Error {
  return new Error(`${asked} returned ${status}, expected ${expect}: ${body.slice(0, SHOWN_CHARACTERS)}`);
}
