import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { getDefaultEnvironment } from '@modelcontextprotocol/sdk/client/stdio.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { JSONRPCMessageSchema, type JSONRPCMessage } from '@modelcontextprotocol/sdk/types.js';
import { MessageLines } from './message-lines.ts';

/** How long the output of an ended process is waited for: what it started may keep it open. */
const LAST_OUTPUT_MS = 500;

/** A line on its standard error that is longer is the last thing that is read there. */
const MAX_LOG_LINE_BYTES = 8 * 1024;

export interface StdioServer {
  command: string;
  args: readonly string[];
  /** Besides the few variables that the SDK passes on: PATH, HOME and the like. */
  env: Record<string, string>;
  maxMessageBytes: number;
  /** How long it may take to end once its input has ended, and again once it was told to by SIGTERM. */
  endMs: number;
  /** A line of its standard error. */
  onLog: (line: string) => void;
}

/**
 * A tool server as a process of its own, spoken to in lines. Unlike the SDK's transport it bounds what it keeps of a
 * message, and ends the whole process group: `npx` and shells start what they were told to, and outlive or leave it.
 */
export class StdioTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage) => void;

  private child: ChildProcessWithoutNullStreams | null = null;
  private ended: Promise<unknown> = Promise.resolve();

  constructor(private readonly server: StdioServer) {}

  /** Rejects when the program cannot be started. */
  async start(): Promise<void> {
    const { command, args, env } = this.server;
    const child = spawn(command, args, {
      env: { ...getDefaultEnvironment(), ...env },
      shell: false,
      // A process group of its own.
      detached: true,
    });
    child.on('error', (error) => this.onerror?.(error));
    child.stdin.on('error', (error) => this.onerror?.(error));
    const spawned = once(child, 'spawn');
    // At once: it may be closed before it has begun.
    this.child = child;
    this.ended = spawned.then(
      () => this.watch(child),
      () => (this.child = null),
    );
    this.readMessages(child);
    this.readLog(child);
    await spawned;
  }

  /** Resolves once the process takes more; rejects when there is none. */
  async send(message: JSONRPCMessage): Promise<void> {
    const child = this.child;
    if (child === null) throw new Error('The tool server has ended.');
    if (child.stdin.write(`${JSON.stringify(message)}\n`)) return;
    await Promise.race([once(child.stdin, 'drain'), this.ended]);
  }

  /** Resolves when the process has ended. */
  async close(): Promise<void> {
    const { child } = this;
    if (child === null) return this.ended.then(() => undefined);
    const { endMs } = this.server;
    child.stdin.end();
    for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
      const outcome = await Promise.race([this.ended, sleep(endMs, 'late', { ref: false })]);
      if (outcome !== 'late') return;
      signalGroup(child, signal);
    }
    await Promise.race([this.ended, sleep(endMs, undefined, { ref: false })]);
  }

  private async watch(child: ChildProcessWithoutNullStreams): Promise<void> {
    const closed = once(child, 'close');
    await once(child, 'exit');
    // What it left running has no one to talk to any more.
    signalGroup(child, 'SIGKILL');
    await Promise.race([closed, sleep(LAST_OUTPUT_MS, undefined, { ref: false })]);
    child.stdout.destroy();
    child.stderr.destroy();
    this.child = null;
    this.onclose?.();
  }

  private readMessages(child: ChildProcessWithoutNullStreams): void {
    const lines = new MessageLines(this.server.maxMessageBytes);
    child.stdout.on('error', (error) => this.onerror?.(error));
    child.stdout.on('data', (piece: Buffer) => {
      try {
        for (const line of lines.take(piece)) this.readMessage(line);
      } catch (error) {
        // It would go on writing. Nothing more of it is taken.
        child.stdout.destroy();
        this.onerror?.(error as Error);
        signalGroup(child, 'SIGKILL');
      }
    });
  }

  private readMessage(line: string): void {
    let message: JSONRPCMessage;
    try {
      message = JSONRPCMessageSchema.parse(JSON.parse(line));
    } catch {
      // Many print something for people before they begin. It is not repeated: it may be anything.
      return this.onerror?.(new Error('A line of the standard output is no message.'));
    }
    this.onmessage?.(message);
  }

  private readLog(child: ChildProcessWithoutNullStreams): void {
    const lines = new MessageLines(MAX_LOG_LINE_BYTES);
    child.stderr.on('error', (error) => this.onerror?.(error));
    const read = (piece: Buffer): void => {
      try {
        for (const line of lines.take(piece)) this.server.onLog(line);
      } catch {
        // A part of a line could hold a part of a secret, which nobody would recognise: no more is read.
        child.stderr.off('data', read).resume();
      }
    };
    child.stderr.on('data', read);
  }
}

/** To all of it that still runs. */
function signalGroup({ pid }: ChildProcessWithoutNullStreams, signal: NodeJS.Signals): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, signal);
  } catch {
    // There is nothing left.
  }
}
