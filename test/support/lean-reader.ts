import { request, type IncomingMessage } from 'node:http';
import { connect, type Socket } from 'node:net';
import { createParser } from 'eventsource-parser';
import type { Caller } from './client.ts';

export interface Visit {
  /** After `/events/stream?`. */
  query?: string;
  /** Takes not one byte, not even the answer's head, until `readOn`. */
  isHeld?: boolean;
}

/** From the first entry on: one who was cut off before he saw any names no id, and comes back with the same URL. */
const FROM_THE_START = `after=${'0'.repeat(26)}`;

/**
 * A reader of one Thread that costs little, so that there can be ten thousand, and that can refuse to read. Like a
 * browser's EventSource it comes back by the last id of a whole frame; when, and to which API, is its owner's to say.
 */
export class LeanReader {
  lastId: string | undefined;
  /** What the API asks for before one comes back, milliseconds. */
  retryMs = 0;
  /** The name of the last frame that is not an entry: `thread.idle`, `thread.error`. */
  lastWord: string | undefined;
  /** Called when a stream that was open is gone, however it went, but not after `leave`. */
  onGone: () => void = () => undefined;
  private socket: Socket | undefined;

  constructor(
    readonly threadId: string,
    private readonly onEntry: (id: string, data: string) => void,
  ) {}

  /** Opens the stream; answers when it is open, where it is not held when it is asked for. Rejects when it is refused. */
  visit(caller: Caller, { query = FROM_THE_START, isHeld = false }: Visit = {}): Promise<void> {
    const { hostname, port, pathname } = new URL(caller.baseUrl);
    const headers: Record<string, string> = { authorization: `Bearer ${caller.token}` };
    if (this.lastId !== undefined) headers['last-event-id'] = this.lastId;
    const socket = connect(Number(port), hostname);
    if (isHeld) socket.pause();
    this.socket = socket;
    const path = `${pathname}/threads/${this.threadId}/events/stream?${query}`;
    return new Promise((resolve, reject) => {
      let isOpen = isHeld;
      const asked = request({ path, headers, createConnection: () => socket });
      asked.on('error', reject);
      asked.on('response', (response) => {
        const isAtRest = response.statusCode === 204;
        if (response.statusCode !== 200 && !isAtRest)
          return reject(new Error(`the stream answered ${response.statusCode}`));
        if (isAtRest) this.lastWord = 'thread.idle';
        isOpen = true;
        this.read(response);
        resolve();
      });
      socket.on('close', () => isOpen && this.socket === socket && this.onGone());
      asked.end(isHeld ? resolve : undefined);
    });
  }

  /** Takes what a held connection has, to its end. */
  async readOn(): Promise<void> {
    const gone = new Promise<void>((resolve) => (this.onGone = resolve));
    this.socket?.resume();
    await gone;
  }

  leave(): void {
    const { socket } = this;
    this.socket = undefined;
    socket?.destroy();
  }

  private read(response: IncomingMessage): void {
    const parser = createParser({
      onRetry: (retryMs) => (this.retryMs = retryMs),
      onEvent: ({ event, id, data }) => {
        if (event !== 'thread.event') return void (this.lastWord = event);
        this.lastId = id;
        this.onEntry(id ?? '', data);
      },
    });
    response.setEncoding('utf8');
    response.on('data', (text: string) => parser.feed(text));
    response.on('error', () => undefined); // told by 'close' of the socket
  }
}
