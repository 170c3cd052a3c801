import { join } from 'node:path';
import { BOUNDS } from '#domain';
import { TaskFailed, type RunTask, type Task, type TaskFailure } from '#task-pool';

export type DocumentKind = 'pdf' | 'docx';

/** Facts about the text of a document. */
interface About {
  /** Whether the document has more text than was extracted. */
  cut: boolean;
  /** The number of pages of a PDF. Only set if some of them have no text. */
  pages?: number;
  /** The numbers of the pages without text, from 1. */
  blankPages?: number[];
}

/** The text as UTF-8, or a sentence that says why there is none. */
export type Extracted = ({ text: Uint8Array } & About) | { refused: string };

const DOCUMENT_BOUNDS = {
  maxText: BOUNDS.files.extracted.value,
  maxXml: BOUNDS.files.unpacked.value,
  maxTag: BOUNDS.files.tag.value,
};

const EXTRACT_TEXT: Task<{ kind: DocumentKind; bounds: typeof DOCUMENT_BOUNDS }, About | { refused: string }> = {
  name: 'extract-text',
  module: join(import.meta.dirname, 'extract-text-worker.mjs'),
  limits: { wallMs: BOUNDS.files.extractTime.value, cpuMs: BOUNDS.files.extractCpu.value },
};

const REFUSALS: Record<TaskFailure, string> = {
  cpu: 'Reading it takes too long.',
  time: 'Reading it takes too long.',
  memory: 'Reading it takes too much memory.',
  crashed: 'Reading it failed.',
  overloaded: 'Too many other documents are being read; try again later.',
};

/**
 * Returns the text of a document, extracted in the task pool within its limits. `readAll` loads the bytes when the pool can
 * start the task. Throws what `readAll` throws, and the signal's reason.
 */
export async function extractText(
  kind: DocumentKind,
  readAll: () => Promise<Uint8Array<ArrayBuffer>>,
  { runTask, signal }: { runTask: RunTask; signal: AbortSignal },
): Promise<Extracted> {
  const load = async () => ({ value: { kind, bounds: DOCUMENT_BOUNDS }, bytes: await readAll() });
  try {
    const { value, bytes = new Uint8Array() } = await runTask(EXTRACT_TEXT, load, signal);
    return 'refused' in value ? value : { text: bytes, ...value };
  } catch (error) {
    if (error instanceof TaskFailed) return { refused: REFUSALS[error.reason] };
    throw error;
  }
}
