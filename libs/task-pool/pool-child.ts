import type { ChildProcess } from 'node:child_process';
import type { Socket } from 'node:net';
import { deserialize, serialize } from 'node:v8';
import { usageOf } from './process-usage.ts';
import { AnswerReader, AnswerTooLarge } from './read-answer.ts';
import { spawnChild } from './spawn-child.ts';
import { TaskFailed, type Payload, type Task, type TaskFailure } from './task.ts';

const HEADER_BYTES = 8;
const WATCH_MS = 50;
/** The end of a child's error output that is kept, for the log. UTF-16 units. */
const KEPT_ERROR_OUTPUT = 2_000;

interface Call {
  readonly task: Task<unknown, unknown>;
  readonly signal: AbortSignal | undefined;
  resolve: (answer: Payload<unknown>) => void;
  reject: (error: unknown) => void;
}

type Answer = { value: unknown } | { failed: { reason: TaskFailure; message: string } };

/** One child process, which runs one call at a time. It does not survive a call that failed or was aborted. */
export class PoolChild {
  private readonly process: ChildProcess;
  private readonly requests: Socket;
  private readonly answers: Socket;
  private errorOutput = '';
  private readonly reader = new AnswerReader();
  private call: Call | null = null;
  private isEnding = false;
  readonly exited: Promise<void>;

  /** Throws if no process can be started. */
  constructor(private readonly memoryBytes: number) {
    this.process = spawnChild(memoryBytes);
    const [requests, , errors, answers] = this.process.stdio as unknown as [Socket, null, Socket, Socket];
    [this.requests, this.answers] = [requests, answers];
    // A broken pipe is reported by the end of the process.
    for (const pipe of [requests, errors, answers]) pipe.on('error', () => undefined);
    errors.setEncoding('utf8').on('data', (text: string) => {
      this.errorOutput = (this.errorOutput + text).slice(-KEPT_ERROR_OUTPUT);
    });
    answers.on('data', (piece: Uint8Array) => this.receive(piece));
    this.exited = new Promise((resolve) => {
      const end = (detail: string): void => {
        this.isEnding = true;
        this.failExited(detail);
        resolve();
      };
      this.process.once('error', (error) => end(error.message));
      this.process.once('close', (code, signal) => end(`it ended with ${signal ?? code}`));
    });
    this.holdLoop(false);
  }

  get isAlive(): boolean {
    return !this.isEnding;
  }

  /** `load` returns the input. The limits apply to it too, but what it throws leaves the child as it was. */
  async run(
    task: Task<unknown, unknown>,
    load: () => Promise<Payload<unknown>>,
    signal?: AbortSignal,
  ): Promise<Payload<unknown>> {
    this.holdLoop(true);
    const before = usageOf(this.process.pid ?? 0)?.cpuMs ?? 0;
    const abort = (): void => this.end(signal?.reason);
    signal?.addEventListener('abort', abort, { once: true });
    const wall = setTimeout(() => this.end(new TaskFailed(task.name, 'time')), task.limits.wallMs);
    const watch = setInterval(() => this.watch(task, before), WATCH_MS);
    try {
      return await new Promise((resolve, reject) => {
        this.call = { task, signal, resolve, reject };
        load()
          .then((input) => this.send(task, input))
          .catch(reject);
      });
    } finally {
      this.call = null;
      clearTimeout(wall);
      clearInterval(watch);
      signal?.removeEventListener('abort', abort);
      this.holdLoop(false);
      this.endIfLarge();
    }
  }

  /** Ends it. A call under way fails as `crashed`. */
  close(): void {
    this.fail('crashed', 'the pool was closed');
    this.kill();
  }

  kill(): void {
    this.isEnding = true;
    this.process.kill('SIGKILL');
  }

  private send({ module }: Task<unknown, unknown>, { value, bytes }: Payload<unknown>): void {
    if (this.call === null) return;
    const message = serialize({ module, value });
    const header = Buffer.alloc(HEADER_BYTES);
    header.writeUInt32BE(message.byteLength, 0);
    header.writeUInt32BE(bytes?.byteLength ?? 0, 4);
    this.requests.write(Buffer.concat([header, message]));
    if (bytes !== undefined && bytes.byteLength > 0) this.requests.write(bytes);
  }

  private receive(piece: Uint8Array): void {
    if (this.call === null) return;
    const { task } = this.call;
    try {
      const raw = this.reader.take(piece, this.memoryOf(task));
      if (raw === null) return;
      const answer = deserialize(raw.message) as Answer;
      if ('failed' in answer) this.fail(answer.failed.reason, answer.failed.message);
      else this.call.resolve({ value: answer.value, bytes: raw.bytes });
    } catch (error) {
      this.fail(error instanceof AnswerTooLarge ? 'memory' : 'crashed', String(error));
    }
  }

  private watch(task: Task<unknown, unknown>, cpuBefore: number): void {
    const { name, limits } = task;
    const usage = usageOf(this.process.pid ?? 0);
    if (usage === null) return;
    if (usage.cpuMs - cpuBefore > limits.cpuMs) this.end(new TaskFailed(name, 'cpu'));
    if (usage.memoryBytes > this.memoryOf(task)) this.end(new TaskFailed(name, 'memory'));
  }

  private memoryOf({ limits }: Task<unknown, unknown>): number {
    return Math.min(limits.memoryBytes ?? Infinity, this.memoryBytes);
  }

  private end(why: unknown): void {
    this.kill();
    this.call?.reject(why);
  }

  private fail(reason: TaskFailure, detail: string): void {
    if (this.call) this.end(new TaskFailed(this.call.task.name, reason, detail));
  }

  /** A SIGKILL from outside counts as `crashed`: the kernel also chooses a child when others have used up the memory. */
  private failExited(detail: string): void {
    const isMemory = /out of memory|allocation failed|bad_alloc/i.test(this.errorOutput);
    const said = this.errorOutput.trim();
    this.fail(isMemory ? 'memory' : 'crashed', said === '' ? detail : `${detail}: ${said}`);
  }

  /** Memory that a call has left must not count against the next one. */
  private endIfLarge(): void {
    const { memoryBytes = 0 } = usageOf(this.process.pid ?? 0) ?? {};
    if (memoryBytes > this.memoryBytes / 2) this.kill();
  }

  /** An idle child does not keep this process running. */
  private holdLoop(isHeld: boolean): void {
    const how = isHeld ? 'ref' : 'unref';
    for (const held of [this.process, ...(this.process.stdio as (Socket | null)[])]) held?.[how]();
  }
}
