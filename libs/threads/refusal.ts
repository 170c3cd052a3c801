import type { ReadinessIssue } from '#agents';
import type { PermissionDecision, Rejection } from '#domain';
import type { FileRefusal } from '#files';

/** Refusals of an append that say enough by themselves. */
type PlainRefusal = Exclude<
  FileRefusal,
  'files_refused' | 'files_full' | 'folder_moved' | 'folder_full' | 'artifacts_full'
>;

/** The reason why a use case changed nothing. Callers of the package map it to their own errors. */
export type Refusal =
  /** `decision`: the decision that counts, if the rejected command decides a request that is already decided. */
  | { reason: 'rejected'; rejection: Rejection; decision?: PermissionDecision }
  | { reason: 'agent_not_ready'; issues: readonly ReadinessIssue[] }
  | { reason: 'draft_repeated' | 'draft_not_found'; fileId: string }
  | { reason: 'too_many_attachments'; max: number }
  /** `threadId`: the Thread that has the reference. */
  | { reason: 'reference_taken'; threadId: string }
  | { reason: PlainRefusal }
  /** The Agent is deleted or has no live version. */
  | { reason: 'no_live_version' }
  /** The Thread has no such Run. */
  | { reason: 'run_not_found' }
  /** The file is gone, or no longer has the expected bytes. */
  | { reason: 'file_changed' }
  /** Another request has the idempotency key, or is in progress under it. */
  | { reason: 'key_taken' }
  /** Too many concurrent writers. The same request may succeed on a retry. */
  | { reason: 'thread_contended' | 'files_contended' };

/** A use case was refused. Nothing was changed. */
export class ThreadRefused extends Error {
  override name = 'ThreadRefused';

  constructor(readonly refusal: Refusal) {
    super(`The change of the Thread was refused: ${refusal.reason}.`);
  }
}
