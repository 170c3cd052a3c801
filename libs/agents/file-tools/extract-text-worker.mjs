/**
 * The task `extract-text`. Returns the text of a PDF or DOCX as UTF-8 with the facts of `About` (extract-text.ts), or
 * `{ refused }` with the reason as a sentence. The cost is linear in the unpacked size, and unpacking stops once there is enough
 * text. Plain JavaScript, because the task pool loads it. `bounds` has the most text that is extracted (`maxText`) and the
 * longest XML tag (`maxTag`), UTF-16 units, and the most bytes of the part of a DOCX that is unpacked (`maxXml`).
 */
import { createInflateRaw } from 'node:zlib';

/** The longest entity that is decoded, UTF-16 units. */
const MAX_ENTITY = 12;

async function textOfPdf(bytes, { maxText }) {
  const { getDocumentProxy } = await import('unpdf');
  const pdf = await getDocumentProxy(bytes, { verbosity: 0, isEvalSupported: false, stopAtErrors: false });
  const blankPages = [];
  let text = '';
  for (let number = 1; number <= pdf.numPages && text.length <= maxText; number++) {
    const page = await pdf.getPage(number);
    const { items } = await page.getTextContent();
    text += `${number > 1 ? '\n\n' : ''}--- Page ${number} of ${pdf.numPages} ---\n`;
    const ofPage = items.map((item) => (item.str ?? '') + (item.hasEOL ? '\n' : '')).join('');
    if (!/\S/.test(ofPage)) blankPages.push(number);
    text += ofPage;
    page.cleanup();
  }
  const value = { cut: text.length > maxText, ...(blankPages.length > 0 && { pages: pdf.numPages, blankPages }) };
  return { value, bytes: new TextEncoder().encode(text.slice(0, maxText)) };
}

async function textOfDocx(bytes, { maxText, maxXml, maxTag }) {
  const { packed, size, isStored } = findPart(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength), maxXml);
  const text = new GrowingText(maxText);
  const scanner = new DocxScanner(text, maxTag);
  const decoder = new TextDecoder();
  let unpacked = 0;
  for await (const chunk of isStored ? [packed] : inflated(packed)) {
    unpacked += chunk.byteLength;
    if (unpacked > size) throw new Error('the document is larger than it says');
    scanner.scan(decoder.decode(chunk, { stream: true }));
    if (text.isFull) break;
  }
  if (!text.isFull) scanner.scan(decoder.decode());
  return { value: { cut: text.isFull }, bytes: text.bytes() };
}

function inflated(packed) {
  const inflate = createInflateRaw({ chunkSize: 64 * 1024 });
  inflate.end(packed);
  return inflate;
}

const END_OF_DIRECTORY = 0x06054b50;
const DIRECTORY_ENTRY = 0x02014b50;
const PART = 'word/document.xml';

/** Finds the document in the ZIP archive by its central directory. */
function findPart(zip, maxXml) {
  const end = zip.lastIndexOf(Buffer.from([0x50, 0x4b, 0x05, 0x06]));
  if (end === -1 || zip.readUInt32LE(end) !== END_OF_DIRECTORY) throw new Error('no ZIP archive');
  const count = zip.readUInt16LE(end + 10);
  let at = zip.readUInt32LE(end + 16);
  for (let i = 0; i < count; i++) {
    if (zip.readUInt32LE(at) !== DIRECTORY_ENTRY) throw new Error('a broken directory');
    const nameLength = zip.readUInt16LE(at + 28);
    if (zip.toString('latin1', at + 46, at + 46 + nameLength) === PART) return partAt(zip, at, maxXml);
    at += 46 + nameLength + zip.readUInt16LE(at + 30) + zip.readUInt16LE(at + 32);
  }
  throw new Error('no document in it');
}

function partAt(zip, entry, maxXml) {
  const method = zip.readUInt16LE(entry + 10);
  const size = zip.readUInt32LE(entry + 24);
  const head = zip.readUInt32LE(entry + 42);
  const start = head + 30 + zip.readUInt16LE(head + 26) + zip.readUInt16LE(head + 28);
  const isStored = method === 0;
  if ((!isStored && method !== 8) || size > maxXml) throw new Error('packed in another way, or too large');
  return { packed: zip.subarray(start, start + zip.readUInt32LE(entry + 20)), size, isStored };
}

/** UTF-8 text that grows to at most `maxText` UTF-16 units. */
class GrowingText {
  #buffer = Buffer.alloc(64 * 1024);
  #length = 0;
  #units = 0;
  #endsWithMark = false;
  #maxText;
  isFull = false;

  constructor(maxText) {
    this.#maxText = maxText;
  }

  add(text) {
    const room = this.#maxText - this.#units;
    if (text.length > room) this.isFull = true;
    this.#write(text.length > room ? text.slice(0, room) : text);
    this.#endsWithMark = false;
  }

  /** A tab or a newline. */
  mark(mark) {
    this.add(mark);
    this.#endsWithMark = true;
  }

  /** Replaces the previous mark, because a cell ends with its last paragraph, and a row with its last cell. */
  replaceMark(mark) {
    if (this.#endsWithMark && !this.isFull) {
      this.#length -= 1;
      this.#units -= 1;
    }
    this.mark(mark);
  }

  bytes() {
    return this.#buffer.subarray(0, this.#length);
  }

  #write(text) {
    this.#units += text.length;
    const most = this.#length + 3 * text.length;
    if (most > this.#buffer.byteLength) {
      const larger = Buffer.alloc(2 * most);
      this.#buffer.copy(larger, 0, 0, this.#length);
      this.#buffer = larger;
    }
    this.#length += this.#buffer.write(text, this.#length);
  }
}

/** Takes XML in chunks. Handles a tag once it is complete. */
class DocxScanner {
  #text;
  #rest = '';
  #isInText = false;
  #maxTag;

  constructor(text, maxTag) {
    this.#text = text;
    this.#maxTag = maxTag;
  }

  scan(piece) {
    const xml = this.#rest + piece;
    let at = 0;
    while (!this.#text.isFull) {
      const tag = xml.indexOf('<', at);
      if (tag === -1) {
        this.#rest = xml.slice(this.#takeText(xml, at, wholeEntities(xml, at)));
        return;
      }
      this.#takeText(xml, at, tag);
      const end = xml.indexOf('>', tag);
      if ((end === -1 ? xml.length : end) - tag > this.#maxTag) throw new Error('a tag is too long');
      if (end === -1) {
        this.#rest = xml.slice(tag);
        return;
      }
      this.#takeTag(xml.slice(tag + 1, end));
      at = end + 1;
    }
  }

  #takeText(xml, from, to) {
    if (this.#isInText && to > from) this.#text.add(xml.slice(from, to).replace(ENTITY, entity));
    return to;
  }

  #takeTag(tag) {
    this.#isInText = tag === 'w:t' || (tag.startsWith('w:t ') && !tag.endsWith('/'));
    // `<w:tab w:val…/>` is a setting, not a tab.
    if (tag === 'w:tab/') this.#text.mark('\t');
    else if (tag === 'w:br/' || tag === 'w:cr/' || (tag.startsWith('w:br ') && tag.endsWith('/')))
      this.#text.mark('\n');
    else if (tag === '/w:p') this.#text.mark('\n');
    else if (tag === '/w:tc') this.#text.replaceMark('\t');
    else if (tag === '/w:tr') this.#text.replaceMark('\n');
  }
}

/** Returns the end of the text that can be decoded now. An entity may continue in the next chunk. */
function wholeEntities(xml, from) {
  const last = xml.lastIndexOf('&');
  const isOpen = last >= from && last > xml.length - MAX_ENTITY && xml.indexOf(';', last) === -1;
  return isOpen ? last : xml.length;
}

const ENTITY = /&(?:(lt|gt|amp|quot|apos)|#(\d{1,7})|#x([0-9a-fA-F]{1,6}));/g;
const ENTITIES = { lt: '<', gt: '>', amp: '&', quot: '"', apos: "'" };

function entity(whole, name, decimal, hexadecimal) {
  if (name !== undefined) return ENTITIES[name];
  const code = decimal === undefined ? parseInt(hexadecimal, 16) : parseInt(decimal, 10);
  return code <= 0x10ffff ? String.fromCodePoint(code) : whole;
}

export default async ({ kind, bounds }, bytes) => {
  try {
    return await (kind === 'pdf' ? textOfPdf(bytes, bounds) : textOfDocx(bytes, bounds));
  } catch (error) {
    // The task pool limits the memory.
    if (error instanceof RangeError && /allocation|invalid (array|string) length/i.test(error.message)) throw error;
    const isLocked = error?.name === 'PasswordException';
    return { value: { refused: isLocked ? 'It is protected by a password.' : 'It is broken, or not what it seems.' } };
  }
};
