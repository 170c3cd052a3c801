import type { AdminAnswer, AdminInput, AdminOperationName, AdminOperations } from '#contract';
import type { Actor } from './audit.ts';

export interface AdminContext {
  actor: Actor;
  /** The caller has gone, or the process ends: long answers stop. */
  signal: AbortSignal;
}

type Answered<N extends AdminOperationName> = AdminAnswer<AdminOperations[N]>;

/** Does one operation. Throws AdminRefused, DatabaseAway, and of a fault of ours anything. */
export type AdminHandler<N extends AdminOperationName> = (
  input: AdminInput<AdminOperations[N]>,
  context: AdminContext,
) => AdminOperations[N]['form'] extends 'lines' ? AsyncIterable<Answered<N>> : Promise<Answered<N>>;

export type AdminHandlers = { [N in AdminOperationName]: AdminHandler<N> };
export type SomeHandlers<N extends AdminOperationName> = Pick<AdminHandlers, N>;
