import { join } from 'node:path';
import { TaskFailed, type RunTask, type Task, type TaskFailure } from '#task-pool';

export type DocumentKind = 'pdf' | 'docx';

/** What is said of the text of a document. */
interface About {
  /** Whether the document has more text. */
  cut: boolean;
  /** Of a PDF that has pages without text: how many pages there are. */
  pages?: number;
  /** The numbers of those pages, 1 for the first. */
  blankPages?: number[];
}

/** UTF-8 text; or a sentence that says why there is no text. */
export type Extracted = ({ text: Uint8Array } & About) | { refused: string };

const EXTRACT_TEXT: Task<{ kind: DocumentKind }, About | { refused: string }> = {
  name: 'extract-text',
  module: join(import.meta.dirname, 'extract-text-worker.mjs'),
  limits: { wallMs: 30_000, cpuMs: 10_000 },
};

const REFUSALS: Record<TaskFailure, string> = {
  cpu: 'Reading it takes too long.',
  time: 'Reading it takes too long.',
  memory: 'Reading it takes too much memory.',
  crashed: 'Reading it has failed.',
  overloaded: 'Too many other documents are being read; try again later.',
};

/**
 * Returns the text of a document, which the task pool reads within its limits. `readAll` loads the bytes when it is the
 * document's turn. Throws what that throws, and the signal's reason.
 */
export async function extractText(
  kind: DocumentKind,
  readAll: () => Promise<Uint8Array<ArrayBuffer>>,
  { runTask, signal }: { runTask: RunTask; signal: AbortSignal },
): Promise<Extracted> {
  const load = async () => ({ value: { kind }, bytes: await readAll() });
  try {
    const { value, bytes = new Uint8Array() } = await runTask(EXTRACT_TEXT, load, signal);
    return 'refused' in value ? value : { text: bytes, ...value };
  } catch (error) {
    if (error instanceof TaskFailed) return { refused: REFUSALS[error.reason] };
    throw error;
  }
}
