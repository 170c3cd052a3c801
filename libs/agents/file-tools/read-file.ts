import { setImmediate } from 'node:timers/promises';
import type { FolderFile, ThreadFiles, ToolContext, ToolResult } from '../harness.ts';
import { extractText, type DocumentKind } from './extract-text.ts';
import { readWhole } from './read-whole.ts';
import { decoded, encodingOf } from './text-encoding.ts';
import { takeWindow, type TextWindow } from './text-window.ts';

const MAX_BYTES = 256 * 1024;
/** So many bytes tell an encoding. */
const HEAD_BYTES = 8 * 1024;
/** Documents are read whole, in the task pool. */
const MAX_DOCUMENT_BYTES = 32 * 1024 * 1024;
/** Copies of a document that are held in memory while it is read. */
const DOCUMENT_COPIES = 2;
/** A piece that takes some milliseconds. Bytes. */
const STEP_BYTES = 64 * 1024;
const IMAGES = ['image/png', 'image/jpeg', 'image/gif', 'image/webp'];
const DOCX = 'application/vnd.openxmlformats-officedocument.wordprocessingml.document';

interface Wanted {
  /** First line, 1 for the first. */
  offset: number;
  /** Lines. */
  limit: number;
}

/** What a model is given of a file. Throws FileRefused. */
export async function readFolderFile(file: FolderFile, wanted: Wanted, context: ToolContext): Promise<ToolResult> {
  const { path, size, mimeType, fileId } = file;
  const about = `${path} (${[...(mimeType === null ? [] : [mimeType]), `${size} bytes`].join(', ')})`;
  if (mimeType !== null && IMAGES.includes(mimeType)) {
    return { text: `${about} is an image. It is shown where images can be.`, isError: false, fileIds: [fileId] };
  }
  const { files } = context;
  const kind = documentKind(file);
  if (kind !== null) {
    const load = async () => {
      context.makeRoom(DOCUMENT_COPIES * Math.min(size, MAX_DOCUMENT_BYTES));
      return readWhole(files, file, MAX_DOCUMENT_BYTES);
    };
    const text = await extractText(kind, load, context);
    if ('refused' in text) return { text: `The text of ${about} cannot be read. ${text.refused}`, isError: true };
    const window = await takeWindow(decoded(inSteps(text.text), 'utf-8'), { ...wanted, maxBytes: MAX_BYTES });
    const note = text.cut && !window.more ? `\n[${path} has more text, which is not read.]` : '';
    return { text: shown(path, window, wanted) + note, isError: false };
  }
  const encoding = encodingOf(await headOf(files, file));
  if (encoding === null) return { text: `${about} is not text and cannot be shown.`, isError: false };
  const window = await takeWindow(decoded(await files.read(file), encoding), { ...wanted, maxBytes: MAX_BYTES });
  return { text: shown(path, window, wanted), isError: false };
}

/** Lets the event loop run after each piece. */
async function* inSteps(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.byteLength; at += STEP_BYTES) {
    yield bytes.subarray(at, at + STEP_BYTES);
    await setImmediate();
  }
}

/** By the name where the first bytes only tell that it is packed. */
function documentKind({ mimeType, path }: FolderFile): DocumentKind | null {
  if (mimeType === 'application/pdf') return 'pdf';
  const isDocx = mimeType === DOCX || (mimeType === 'application/zip' && path.toLowerCase().endsWith('.docx'));
  return isDocx ? 'docx' : null;
}

async function headOf(files: ThreadFiles, file: FolderFile): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of await files.read(file, { start: 0, end: HEAD_BYTES - 1 })) chunks.push(chunk);
  return Buffer.concat(chunks);
}

/** The text, and where there is something to tell of it a note in brackets. */
function shown(path: string, { text, lines, skipped, more }: TextWindow, { offset }: Wanted): string {
  if (lines === 0) return skipped === 0 ? `[${path} is empty.]` : `[${path} has only ${skipped} lines.]`;
  if (!more) return text;
  const last = offset + lines - 1;
  const gap = text.endsWith('\n') ? '' : '\n';
  return `${text}${gap}[Lines ${offset} to ${last} of ${path}. It goes on: read with offset ${last + 1}.]`;
}
