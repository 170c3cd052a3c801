import type { AdminAnswer, AdminInput, AdminOperationName, AdminOperations } from '#contract';
import type { FileRow } from '#files';
import type { Actor } from './audit.ts';

export interface AdminContext {
  actor: Actor;
  /** The caller has gone, or the process ends: long answers stop. */
  signal: AbortSignal;
}

type Answered<N extends AdminOperationName> = AdminAnswer<AdminOperations[N]>;

/** By the form of the answer. `bytes`: of which file; whoever has asked for the operation reads them. */
interface Answers<N extends AdminOperationName> {
  json: Promise<Answered<N>>;
  lines: AsyncIterable<Answered<N>>;
  bytes: Promise<FileRow>;
}

/** Does one operation. Throws AdminRefused, DatabaseUnavailable, and of a fault of ours anything. */
export type AdminHandler<N extends AdminOperationName> = (
  input: AdminInput<AdminOperations[N]>,
  context: AdminContext,
) => Answers<N>[AdminOperations[N]['form']];

export type AdminHandlers = { [N in AdminOperationName]: AdminHandler<N> };
export type SomeHandlers<N extends AdminOperationName> = Pick<AdminHandlers, N>;
