/**
 * The text of a PDF or a DOCX, in a thread of its own (extract-text.ts): documents come from anybody, and may take any time
 * and memory. Not TypeScript, so that the same file runs from the sources and from dist/. Answers `{text, cut}`, or
 * `{refused}`, a sentence.
 */
import { parentPort, workerData } from 'node:worker_threads';
import { unzipSync } from 'fflate';
import { getDocumentProxy } from 'unpdf';

/** UTF-16 units of text; the rest is left out. */
const MAX_TEXT = 4 * 1024 * 1024;
/** Bytes of the one part of a DOCX that is unpacked, whatever else it holds. */
const MAX_XML = 64 * 1024 * 1024;

async function textOfPdf(bytes) {
  const pdf = await getDocumentProxy(bytes, { verbosity: 0, isEvalSupported: false, stopAtErrors: false });
  let text = '';
  for (let number = 1; number <= pdf.numPages && text.length <= MAX_TEXT; number++) {
    const page = await pdf.getPage(number);
    const { items } = await page.getTextContent();
    text += `${number > 1 ? '\n\n' : ''}--- Page ${number} of ${pdf.numPages} ---\n`;
    text += items.map((item) => (item.str ?? '') + (item.hasEOL ? '\n' : '')).join('');
    page.cleanup();
  }
  return text;
}

/** A text, a tab, a break, or the end of a paragraph, a table cell or a row. `<w:tab w:val…/>` is a setting and no tab. */
const DOCX_TOKEN = /<w:t(?: [^>]*)?>([^<]*)<\/w:t>|<w:(tab|br|cr)\/>|<w:(br) [^>]*\/>|<\/w:(p|tc|tr)>/g;
const ENTITIES = { lt: '<', gt: '>', amp: '&', quot: '"', apos: "'" };

function textOfDocx(bytes) {
  // Into a buffer of the stated size, so that a part that is larger than it says gets nowhere.
  const parts = unzipSync(bytes, {
    filter: ({ name, originalSize }) => name === 'word/document.xml' && originalSize <= MAX_XML,
  });
  const xml = parts['word/document.xml'];
  if (xml === undefined) throw new Error('no document in it, or too large a one');
  const pieces = [];
  for (const [, text, mark, brk, end] of new TextDecoder().decode(xml).matchAll(DOCX_TOKEN)) {
    if (text !== undefined) pieces.push(text.replace(/&(?:(lt|gt|amp|quot|apos)|#(\d+)|#x([0-9a-fA-F]+));/g, entity));
    else if (mark !== undefined) pieces.push(mark === 'tab' ? '\t' : '\n');
    else if (brk !== undefined || end === 'p') pieces.push('\n');
    // A cell ends with its last paragraph, a row with its last cell.
    else pieces.splice(-1, 1, end === 'tc' ? '\t' : '\n');
  }
  return pieces.join('');
}

function entity(whole, name, decimal, hexadecimal) {
  if (name !== undefined) return ENTITIES[name];
  const code = decimal === undefined ? parseInt(hexadecimal, 16) : parseInt(decimal, 10);
  return code <= 0x10ffff ? String.fromCodePoint(code) : whole;
}

const { kind, bytes } = workerData;
try {
  const text = await (kind === 'pdf' ? textOfPdf(bytes) : textOfDocx(bytes));
  parentPort.postMessage({ text: text.slice(0, MAX_TEXT), cut: text.length > MAX_TEXT });
} catch (error) {
  const isLocked = error?.name === 'PasswordException';
  parentPort.postMessage({
    refused: isLocked ? 'It is protected by a password.' : 'It is broken, or not what it seems.',
  });
}
