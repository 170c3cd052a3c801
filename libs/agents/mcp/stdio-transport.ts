import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import type { JSONRPCMessage } from '@modelcontextprotocol/sdk/types.js';
import { BOUNDS } from '#domain';
import { ownTurn, pauseIfLong } from '#platform';
import { JsonShape } from '../json-shape.ts';
import { parseMessage } from './message.ts';
import { MessageLines } from './message-lines.ts';
import type { Launch } from './sandbox.ts';
import { LastLines, type Ending } from './server-ending.ts';
import { killProcess, signalServer, startServer, type ServerProcess } from './server-process.ts';
import { watchServer } from './server-watch.ts';

/** How long to wait for the output of an exited process, because its children may keep the output open. */
const LAST_OUTPUT_MS = 500;

const LARGE_MESSAGE = BOUNDS.messages.parsedTogether.value;

const MAX_LOG_LINE_BYTES = BOUNDS.toolServers.logLine.value;
const MAX_LOG_LINES = BOUNDS.toolServers.logLines.value;

const MAX_UNREADABLE = BOUNDS.toolServers.unreadable.value;

export interface StdioServer {
  /** How the process is started. */
  launch: () => Promise<Launch>;
  /** Returns the largest size of the current message. */
  maxBytes: () => number;
  /** Called for each chunk of standard output with its bytes. A throw ends the process. */
  onBytes: (bytes: number) => void;
  /** Called with the number of lines before each one is read. A throw ends the process. */
  onMessages: (count: number) => void;
  /** Called with the bytes of an answer to `tools/list` before it is passed on. */
  onListPage: (bytes: number) => void;
  /** Called with the bytes of the current message so far, and with 0 at its end. A throw ends the process. */
  onHeld: (bytes: number) => void;
  /** How long the process may take to exit after its input has ended, and again after SIGTERM. */
  endMs: number;
  /** Called with each line of standard error. */
  onLog: (line: string) => void;
}

/**
 * The transport to a tool server in a child process, one message a line. Unlike the SDK's transport, it limits the size of a
 * message. It also ends the whole process group, because `npx` and shells start the server as a child.
 */
export class StdioTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage) => void;

  private child: ServerProcess | null = null;
  private isClosed = false;
  private ended: Promise<unknown> = Promise.resolve();
  /** Whether lines wait for their turn. Nothing more is read meanwhile. */
  private isReading = false;
  /** Lines since the last request that are not messages. */
  private unreadable = 0;
  /** The limit that the output or the process exceeded. Nothing more of the output is kept or read. */
  private broken: Error | null = null;
  private exit: Ending['exit'] = null;
  private readonly lastLines = new LastLines();
  /** The ids of `tools/list` requests without an answer. */
  private readonly listIds = new Set<unknown>();

  constructor(private readonly server: StdioServer) {}

  /** What is known of its process, for the error of a server that gave no answer. */
  get ending(): Ending {
    const { exit, broken } = this;
    return { exit, broken, lastLines: this.lastLines.lines };
  }

  /** Rejects when the program cannot be started. */
  async start(): Promise<void> {
    const launch = await this.server.launch();
    // It may be closed before it has begun.
    if (this.isClosed) throw new Error('The tool server was closed before it was started.');
    const child = startServer(launch);
    child.on('error', (error) => this.onerror?.(error));
    child.stdin.on('error', (error) => this.onerror?.(error));
    const spawned = once(child, 'spawn');
    this.child = child;
    this.ended = spawned.then(
      () => this.watch(child, launch, reading),
      () => (this.child = null),
    );
    const reading = this.readMessages(child).catch((error: unknown) => this.breakOff(child, error as Error));
    this.readLog(child);
    await spawned;
  }

  /** Resolves once the process accepts more input. Rejects if there is no process. */
  async send(message: JSONRPCMessage): Promise<void> {
    const child = this.child;
    if (child === null) throw new Error('The tool server has ended.');
    if ('id' in message && 'method' in message) {
      this.unreadable = 0;
      if (message.method === 'tools/list') this.listIds.add(message.id);
    }
    if (child.stdin.write(`${JSON.stringify(message)}\n`)) return;
    await Promise.race([once(child.stdin, 'drain'), this.ended]);
  }

  /** Resolves when the process has ended. */
  async close(): Promise<void> {
    const { child } = this;
    this.isClosed = true;
    if (child === null) return this.ended.then(() => undefined);
    const { endMs } = this.server;
    child.stdin.end();
    for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
      const outcome = await Promise.race([this.ended, sleep(endMs, 'late', { ref: false })]);
      if (outcome !== 'late') return;
      signalServer(child, signal);
    }
    await Promise.race([this.ended, sleep(endMs, undefined, { ref: false })]);
  }

  private async watch(child: ServerProcess, { limits }: Launch, reading: Promise<void>): Promise<void> {
    const closed = Promise.all([once(child, 'close'), reading]);
    const exited = once(child, 'exit');
    const endWatch = watchServer(child.pid!, limits, (error, pids) => {
      this.breakOff(child, error);
      // Without bubblewrap some may have left the group of the server.
      for (const pid of pids) killProcess(pid);
    });
    const [status, signal] = (await exited) as [number | null, NodeJS.Signals | null];
    this.exit = { status, signal };
    endWatch();
    // Processes that it left running have no use any more.
    signalServer(child, 'SIGKILL');
    do await Promise.race([closed, sleep(LAST_OUTPUT_MS, undefined, { ref: false })]);
    while (this.isReading);
    child.stdout.destroy();
    child.stderr.destroy();
    await reading;
    this.child = null;
    this.server.onHeld(0);
    this.onclose?.();
  }

  /** Reads one piece after the other, and its lines in short turns. Rejects when the output breaks a limit. */
  private async readMessages(child: ServerProcess): Promise<void> {
    const lines = new MessageLines(this.server.maxBytes);
    const shape = new JsonShape('line');
    try {
      for await (const piece of child.stdout as AsyncIterable<Buffer>) {
        this.isReading = true;
        await pauseIfLong();
        if (this.broken !== null) return;
        this.server.onBytes(piece.length);
        this.server.onHeld(lines.bytes + piece.length);
        shape.take(piece);
        for (const line of lines.take(piece)) await this.readLine(line);
        if (this.broken !== null) return;
        this.server.onHeld(lines.bytes);
        this.isReading = false;
      }
    } catch (error) {
      // `watch` or `breakOff` destroyed the stream.
      if ((error as NodeJS.ErrnoException).code !== 'ERR_STREAM_PREMATURE_CLOSE') throw error;
    } finally {
      this.isReading = false;
    }
  }

  private breakOff(child: ServerProcess, error: Error): void {
    this.broken ??= error;
    child.stdout.destroy();
    this.server.onHeld(0);
    this.onerror?.(error);
    signalServer(child, 'SIGKILL');
  }

  private async readLine(line: string): Promise<void> {
    const isLarge = line.length > LARGE_MESSAGE;
    await (isLarge ? ownTurn() : pauseIfLong());
    if (this.broken !== null) return;
    this.server.onMessages(1);
    const message = this.parse(line);
    if (message === null) return;
    // The SDK serializes unexpected messages again, which takes long for large ones.
    if (isLarge) await ownTurn();
    if (this.broken !== null) return;
    // The SDK takes the id of an answer as a number.
    if ('id' in message && !('method' in message) && this.listIds.delete(Number(message.id)))
      this.server.onListPage(Buffer.byteLength(line));
    this.onmessage?.(message);
  }

  /** Returns null for a line that is not a message. */
  private parse(line: string): JSONRPCMessage | null {
    try {
      return parseMessage(line);
    } catch {
      // Only white space, or a byte order mark.
      if (line.trim() === '') return null;
      if (++this.unreadable > MAX_UNREADABLE)
        throw new Error('Standard output has too many lines that are not JSON-RPC messages.');
      // The line is not repeated, because it may contain anything.
      this.onerror?.(new Error('A line of standard output is not a JSON-RPC message.'));
      return null;
    }
  }

  private readLog(child: ServerProcess): void {
    const lines = new MessageLines(() => MAX_LOG_LINE_BYTES);
    let left = MAX_LOG_LINES;
    child.stderr.on('error', (error) => this.onerror?.(error));
    const stop = (): void => {
      this.lastLines.forget();
      child.stderr.off('data', read).off('end', readRest).resume();
    };
    const read = (piece: Buffer): void => {
      try {
        for (const line of lines.take(piece).slice(0, left)) {
          left -= 1;
          this.lastLines.take(line);
          this.server.onLog(line);
        }
      } catch {
        // Stops reading: a part of a line could contain a part of a secret, which could not be hidden.
        return stop();
      }
      if (left === 0) stop();
    };
    // The last line of a program that dies may have no end.
    const readRest = (): void => read(Buffer.from('\n'));
    child.stderr.on('data', read).on('end', readRest);
  }
}
