import { join } from 'node:path';
import { TaskFailed, type RunTask, type Task, type TaskFailure } from '#task-pool';
import { editText, type TextEdit } from './edit-text-worker.mjs';

/** An edit of this many bytes takes at most 20 ms. Larger files are edited in the task pool. */
const MAX_BYTES_HERE = 256 * 1024;
/** The most comparisons of the search: bytes of the file × bytes of the text. They take at most 20 ms. */
const MAX_COMPARISONS_HERE = 16 * 1024 * 1024;

type Edited = { count: number; bytes: Uint8Array<ArrayBuffer> } | { refused: string };

const EDIT_TEXT: Task<TextEdit, { count: number } | { refused: string }> = {
  name: 'edit-text',
  module: join(import.meta.dirname, 'edit-text-worker.mjs'),
  limits: { wallMs: 15_000, cpuMs: 3_000 },
};

const REFUSALS: Record<TaskFailure, string> = {
  cpu: 'The edit takes too long. Give a shorter old_text.',
  time: 'The edit takes too long. Give a shorter old_text.',
  memory: 'The edit takes too much memory.',
  crashed: 'The edit failed.',
  overloaded: 'Too many other files are being edited; try again later.',
};

/** Returns the edited file, or a sentence that says why there is none. Throws the signal's reason. */
export async function editFile(
  bytes: Uint8Array<ArrayBuffer>,
  edit: TextEdit,
  { runTask, signal }: { runTask: RunTask; signal: AbortSignal },
): Promise<Edited> {
  const comparisons = bytes.byteLength * edit.oldText.length;
  if (bytes.byteLength <= MAX_BYTES_HERE && comparisons <= MAX_COMPARISONS_HERE) return editText(bytes, edit);
  try {
    const { value, bytes: edited = new Uint8Array() } = await runTask(EDIT_TEXT, { value: edit, bytes }, signal);
    return 'refused' in value ? value : { ...value, bytes: edited };
  } catch (error) {
    if (error instanceof TaskFailed) return { refused: REFUSALS[error.reason] };
    throw error;
  }
}
