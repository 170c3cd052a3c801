import { setImmediate } from 'node:timers/promises';
import { BOUNDS } from '#domain';
import { countUtf8, encodingOf, UTF_8, type TextEncoding } from '#platform';
import type { FolderFile, ThreadFiles, ToolContext, ToolResult } from '../harness.ts';
import { imageTypeOf, isImageType } from '../image-type.ts';
import { TextDecoding } from './decode-text.ts';
import { extractText, type DocumentKind } from './extract-text.ts';
import { readWhole } from './read-whole.ts';
import { takeWindow, type TextWindow } from './text-window.ts';

const MAX_BYTES = BOUNDS.files.read.value;
const HEAD_BYTES = BOUNDS.files.head.value;
const PDF_MARK = '%PDF-';
const MAX_DOCUMENT_BYTES = BOUNDS.files.document.value;
/** Copies of a document that are held in memory while it is read. */
const DOCUMENT_COPIES = 2;
const STEP_BYTES = BOUNDS.files.decoded.value;
const DOCX = 'application/vnd.openxmlformats-officedocument.wordprocessingml.document';

interface Wanted {
  /** First line, 1 for the first. */
  offset: number;
  /** Lines. */
  limit: number;
}

/**
 * Returns the tool result for a file. The bytes decide its type, because a stored type may come from the file's name alone.
 * Throws FileRefused.
 */
export async function readFolderFile(file: FolderFile, wanted: Wanted, context: ToolContext): Promise<ToolResult> {
  const { path, size, mimeType, fileId } = file;
  const head = await headOf(context.files, file);
  const isImage = isImageType(mimeType) && imageTypeOf(head) !== null;
  const type = isImage || !isImageType(mimeType) ? mimeType : null;
  const about = `${path} (${[...(type === null ? [] : [type]), `${size} bytes`].join(', ')})`;
  if (isImage)
    return {
      text: `${about} is an image. It is shown if the model accepts images.`,
      isError: false,
      fileIds: [fileId],
    };
  const encoding = encodingOf(head, head.byteLength === HEAD_BYTES);
  const kind = documentKind(file);
  // Some PDFs begin with ASCII characters only, and look like text.
  if (kind !== null && (encoding === null || head.includes(PDF_MARK)))
    return readDocument(file, kind, about, wanted, context);
  if (encoding === null) return { text: `${about} is not text and cannot be shown.`, isError: false };
  return { text: await readText(file, { head, encoding }, wanted, context.files), isError: false };
}

async function readDocument(
  file: FolderFile,
  kind: DocumentKind,
  about: string,
  wanted: Wanted,
  context: ToolContext,
): Promise<ToolResult> {
  const { path, size } = file;
  const load = async () => {
    context.makeRoom(DOCUMENT_COPIES * Math.min(size, MAX_DOCUMENT_BYTES));
    return readWhole(context.files, file, MAX_DOCUMENT_BYTES);
  };
  const read = await extractText(kind, load, context);
  if ('refused' in read) return { text: `The text of ${about} cannot be read. ${read.refused}`, isError: true };
  const { text, cut, pages = 0, blankPages = [] } = read;
  const blank = blankPages.length === 0 ? [] : [blankNote(path, pages, blankPages)];
  if (pages > 0 && blankPages.length === pages) return { text: `[${blank.join()}]`, isError: false };
  const pieces = new TextDecoding('utf-8').read(inSteps(text));
  const window = await takeWindow(pieces, { ...wanted, maxBytes: MAX_BYTES });
  const more = cut && !window.more ? [`${path} has more text that was not read.`] : [];
  return { text: shown(path, window, wanted, [...more, ...blank]), isError: false };
}

/** The most page numbers that a note lists. */
const MAX_NUMBERS = 20;

function blankNote(path: string, pages: number, blankPages: readonly number[]): string {
  const count = blankPages.length;
  const numbers = blankPages.slice(0, MAX_NUMBERS).join(', ') + (count > MAX_NUMBERS ? ', …' : '');
  const which = count === pages ? '' : ` of ${pages}: ${numbers}`;
  return count === 1
    ? `${path} has no text on 1 page${which}. It may be a scanned image.`
    : `${path} has no text on ${count} pages${which}. They may be scanned images.`;
}

/** From this many invalid sequences of UTF-8, the first bytes are enough evidence for an older encoding. */
const MUCH_EVIDENCE = 16;

interface Beginning {
  head: Uint8Array;
  encoding: TextEncoding;
}

/** Decides between UTF-8 and an older encoding by all bytes up to the end of the requested part. */
async function readText(file: FolderFile, beginning: Beginning, wanted: Wanted, files: ThreadFiles): Promise<string> {
  const readAs = async (label: string) => {
    const decoding = new TextDecoding(label);
    const window = await takeWindow(decoding.read(await files.read(file)), { ...wanted, maxBytes: MAX_BYTES });
    return { decoding, window };
  };
  let { encoding } = beginning;
  let { decoding, window } = await readAs(encoding.isOpen ? 'utf-8' : encoding.label);
  if (encoding.isOpen) {
    const isOlder = decoding.invalid > decoding.valid;
    encoding = isOlder ? olderEncoding(beginning, decoding) : UTF_8;
    if (encoding.label !== 'utf-8') ({ decoding, window } = await readAs(encoding.label));
  }
  const isWhole = encoding.label === 'utf-8' && decoding.invalid === 0;
  const replaced = isWhole ? 0 : window.text.split('\ufffd').length - 1;
  const notes = [
    ...(encoding.isGuess ? [`The encoding of ${file.path} was guessed: ${encoding.label}.`] : []),
    ...(replaced > 0 ? [`Invalid ${encoding.label} bytes were replaced by \ufffd, ${replaced} in all.`] : []),
  ];
  return shown(file.path, window, wanted, notes.length === 0 ? [] : [notes.join(' ')]);
}

/** Guesses by the chunk with the most evidence if the first bytes have little. They may be ASCII alone. */
function olderEncoding({ head, encoding }: Beginning, { worst }: TextDecoding): TextEncoding {
  const { invalid } = countUtf8(head);
  if (invalid >= MUCH_EVIDENCE || invalid >= worst.invalid) return encoding;
  const guessed = encodingOf(worst.bytes, true);
  return guessed?.isOpen ? guessed : encoding;
}

/** Lets the event loop run after each piece. */
async function* inSteps(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.byteLength; at += STEP_BYTES) {
    yield bytes.subarray(at, at + STEP_BYTES);
    await setImmediate();
  }
}

/** Returns the kind of document by the stored type, and by the name if that type is only `application/zip`. */
function documentKind({ mimeType, path }: FolderFile): DocumentKind | null {
  if (mimeType === 'application/pdf') return 'pdf';
  const isDocx = mimeType === DOCX || (mimeType === 'application/zip' && path.toLowerCase().endsWith('.docx'));
  return isDocx ? 'docx' : null;
}

async function headOf(files: ThreadFiles, file: FolderFile): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of await files.read(file, { start: 0, end: HEAD_BYTES - 1 })) chunks.push(chunk);
  return Buffer.concat(chunks);
}

/** Returns the text, followed by each note in brackets. */
function shown(path: string, window: TextWindow, { offset }: Wanted, notes: readonly string[]): string {
  const { text, lines, skipped, more } = window;
  if (lines === 0) return skipped === 0 ? `[${path} is empty.]` : `[${path} has only ${skipped} lines.]`;
  const last = offset + lines - 1;
  const goesOn = `Lines ${offset} to ${last} of ${path}. To continue, read with offset ${last + 1}.`;
  const all = [...(more ? [goesOn] : []), ...notes];
  const gap = all.length === 0 || text.endsWith('\n') ? '' : '\n';
  return text + gap + all.map((note) => `[${note}]`).join('\n');
}
