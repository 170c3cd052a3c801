import { join } from 'node:path';
import { BOUNDS } from '#domain';
import { TaskFailed, type RunTask, type Task, type TaskFailure } from '#task-pool';
import { editText, type TextEdit } from './edit-text-worker.mjs';

const MAX_BYTES_HERE = BOUNDS.files.editedHere.value;
const MAX_COMPARISONS_HERE = BOUNDS.files.comparedHere.value;

type Edited = { count: number; bytes: Uint8Array<ArrayBuffer> } | { refused: string };

const EDIT_TEXT: Task<TextEdit, { count: number } | { refused: string }> = {
  name: 'edit-text',
  module: join(import.meta.dirname, 'edit-text-worker.mjs'),
  limits: { wallMs: BOUNDS.files.editTime.value, cpuMs: BOUNDS.files.editCpu.value },
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
