import type { AdminAnswer, AdminCall, AdminOperationName, AdminOperations } from '#contract';

/** What a caller of an operation gives, by its name. */
export type CallOf<N extends AdminOperationName> = AdminCall<AdminOperations[N]>;
export type AnswerOf<N extends AdminOperationName> = AdminAnswer<AdminOperations[N]>;

/** Those whose answer is a file. */
export type FileOperation = {
  [N in AdminOperationName]: AdminOperations[N]['form'] extends 'bytes' ? N : never;
}[AdminOperationName];

/** How commands reach a Spool: by its admin API, or by its database. All of it throws CommandError. */
export interface AdminClient {
  /** The Agent Threads API of the service; absent with `--local`. */
  readonly apiUrl?: string;
  call<N extends AdminOperationName>(name: N, input?: CallOf<N>): Promise<AnswerOf<N>>;
  /** Of operations whose answer comes as lines. With the signal it stops; then it may end or throw. */
  lines<N extends AdminOperationName>(name: N, input?: CallOf<N>, signal?: AbortSignal): AsyncIterable<AnswerOf<N>>;
  /** Of operations whose answer is a file: its bytes, all of them or it throws. */
  bytes(name: FileOperation, input: CallOf<FileOperation>): AsyncIterable<Uint8Array>;
  close(): Promise<void>;
}
