/** Data that crosses the process boundary. `value` is structured-cloned on the event loop, so keep it small; `bytes` are streamed. */
export interface Payload<Value> {
  value: Value;
  bytes?: Uint8Array<ArrayBuffer>;
}

export interface TaskLimits {
  /** From the moment a child is assigned, loading of the input included. Milliseconds. */
  wallMs: number;
  /** CPU time of all threads of the child. Linux only. Milliseconds. */
  cpuMs: number;
  /** Resident memory of the child, about 45 MiB of which Node takes itself. Linux only. At most, and by default, the pool's limit. */
  memoryBytes?: number;
}

/**
 * Work that may run away. `module` is the absolute path of a plain JavaScript module (`*-worker.mjs`, which the build copies
 * to dist/). Its default export is `(value, bytes) => Payload | Promise<Payload>`. Answer what is expected to go wrong, such
 * as malformed input, as a value: a throw counts as `crashed` and costs the child.
 */
export interface Task<Input, Output> {
  /** A label of metrics and logs, such as `extract-text`. */
  readonly name: string;
  readonly module: string;
  readonly limits: TaskLimits;
  /** Never set; carries the types. */
  readonly types?: { input: Input; output: Output };
}

/** The input, or a function that loads it once a child is free, so that waiting calls hold no bytes. */
export type TaskInput<Input> = Payload<Input> | (() => Promise<Payload<Input>>);

/** Runs tasks on behalf of one organization. Throws TaskFailed, the signal's reason, and what loading the input throws. */
export type RunTask = <Input, Output>(
  task: Task<Input, Output>,
  input: TaskInput<Input>,
  signal?: AbortSignal,
) => Promise<Payload<Output>>;

export type TaskFailure = 'cpu' | 'time' | 'memory' | 'crashed' | 'overloaded';

const SENTENCES: Record<TaskFailure, string> = {
  cpu: 'used too much CPU time',
  time: 'took too long',
  memory: 'used too much memory',
  crashed: 'crashed',
  overloaded: 'was refused, because too many calls of its organization are waiting',
};

/** A task that ended without an answer. Concerns this call alone. Do not retry it elsewhere: it would fail there too. */
export class TaskFailed extends Error {
  override name = 'TaskFailed';

  constructor(
    readonly task: string,
    readonly reason: TaskFailure,
    /** For the log. */
    detail = '',
  ) {
    super(`The task ${task} ${SENTENCES[reason]}${detail === '' ? '.' : `: ${detail}`}`);
  }

  /** Whether the call itself used more than it may. What else went wrong may have come from outside. */
  get isOverLimit(): boolean {
    return this.reason === 'cpu' || this.reason === 'memory';
  }
}
