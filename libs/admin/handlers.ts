import type { BrowserTokenHolder } from '#access';
import type { AdminAnswer, AdminInput, AdminOperationName, AdminOperations } from '#contract';
import type { FileRow } from '#files';
import type { Actor } from './audit.ts';

export interface AdminContext {
  actor: Actor;
  /** The operator's credential; null for a user of a machine that reaches the database. */
  holder: BrowserTokenHolder | null;
  /** Aborted when the caller disconnects or the process shuts down. Long responses then stop. */
  signal: AbortSignal;
}

type Answered<N extends AdminOperationName> = AdminAnswer<AdminOperations[N]>;

/** The result by the form of the response. For `bytes` it is the row of the file, whose bytes the caller reads. */
interface Answers<N extends AdminOperationName> {
  json: Promise<Answered<N>>;
  lines: AsyncIterable<Answered<N>>;
  bytes: Promise<FileRow>;
}

/** Performs one operation. Throws AdminRefused, DatabaseUnavailable, and any error of a bug. */
export type AdminHandler<N extends AdminOperationName> = (
  input: AdminInput<AdminOperations[N]>,
  context: AdminContext,
) => Answers<N>[AdminOperations[N]['form']];

export type AdminHandlers = { [N in AdminOperationName]: AdminHandler<N> };
export type SomeHandlers<N extends AdminOperationName> = Pick<AdminHandlers, N>;
