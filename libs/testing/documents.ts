import { constants, deflateRawSync } from 'node:zlib';
import { strToU8, zipSync } from 'fflate';

/** A PDF with a page for each text. */
export function pdfOf(texts: readonly string[]): Uint8Array {
  const pages = texts.map((_, i) => 4 + 2 * i);
  const objects = [
    '<< /Type /Catalog /Pages 2 0 R >>',
    `<< /Type /Pages /Kids [${pages.map((id) => `${id} 0 R`).join(' ')}] /Count ${pages.length} >>`,
    '<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>',
  ];
  texts.forEach((text, i) => {
    const resources = '/Resources << /Font << /F1 3 0 R >> >>';
    objects.push(`<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] ${resources} /Contents ${5 + 2 * i} 0 R >>`);
    objects.push(streamOf(Buffer.from(`BT /F1 24 Tf 72 720 Td (${text}) Tj ET`)));
  });
  return assembled(objects);
}

/** A PDF of some kilobytes whose one page has so many mebibytes when it is unpacked. */
export function pdfBomb(mebibytes: number): Uint8Array {
  return assembled([
    '<< /Type /Catalog /Pages 2 0 R >>',
    '<< /Type /Pages /Kids [3 0 R] /Count 1 >>',
    '<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents 4 0 R >>',
    streamOf(packedSpaces(mebibytes), '/Filter /FlateDecode'),
  ]);
}

/** Put together from packed pieces: to pack it whole would take the memory that its reader must not. */
function packedSpaces(mebibytes: number): Buffer {
  const piece = deflateRawSync(Buffer.alloc(1024 * 1024, ' '), { finishFlush: constants.Z_FULL_FLUSH });
  const header = Buffer.from([0x78, 0x9c]);
  const end = Buffer.from([0x03, 0x00]);
  return Buffer.concat([header, ...Array<Buffer>(mebibytes).fill(piece), end]);
}

function streamOf(bytes: Buffer, more = ''): string {
  return `<< /Length ${bytes.byteLength} ${more} >>\nstream\n${bytes.toString('latin1')}\nendstream`;
}

function assembled(objects: readonly string[]): Uint8Array {
  let text = '%PDF-1.4\n';
  const offsets = objects.map((object, i) => {
    const at = text.length;
    text += `${i + 1} 0 obj\n${object}\nendobj\n`;
    return at;
  });
  const rows = offsets.map((at) => `${String(at).padStart(10, '0')} 00000 n \n`).join('');
  text += `xref\n0 ${objects.length + 1}\n0000000000 65535 f \n${rows}`;
  text += `trailer << /Size ${objects.length + 1} /Root 1 0 R >>\nstartxref\n${text.lastIndexOf('xref\n')}\n%%EOF`;
  return Buffer.from(text, 'latin1');
}

/** A DOCX with this in its body. */
export function docxOf(body: string): Uint8Array {
  const xmlns = 'http://schemas.openxmlformats.org/wordprocessingml/2006/main';
  const document = `<?xml version="1.0"?><w:document xmlns:w="${xmlns}"><w:body>${body}</w:body></w:document>`;
  return zipSync({ '[Content_Types].xml': strToU8('<Types/>'), 'word/document.xml': strToU8(document) });
}

/** A DOCX whose document says that it has `stated` bytes, and has 64 mebibytes. */
export function docxBomb(stated: number): Uint8Array {
  const packed = packedSpaces(64).subarray(2);
  const name = Buffer.from('word/document.xml');
  const head = Buffer.alloc(30);
  head.writeUInt32LE(0x04034b50, 0);
  head.writeUInt16LE(20, 4);
  head.writeUInt16LE(8, 8);
  head.writeUInt32LE(packed.byteLength, 18);
  head.writeUInt32LE(stated, 22);
  head.writeUInt16LE(name.byteLength, 26);
  const entry = Buffer.alloc(46);
  entry.writeUInt32LE(0x02014b50, 0);
  entry.writeUInt16LE(20, 6);
  entry.writeUInt16LE(8, 10);
  entry.writeUInt32LE(packed.byteLength, 20);
  entry.writeUInt32LE(stated, 24);
  entry.writeUInt16LE(name.byteLength, 28);
  const end = Buffer.alloc(22);
  end.writeUInt32LE(0x06054b50, 0);
  end.writeUInt16LE(1, 8);
  end.writeUInt16LE(1, 10);
  end.writeUInt32LE(entry.byteLength + name.byteLength, 12);
  end.writeUInt32LE(head.byteLength + name.byteLength + packed.byteLength, 16);
  return Buffer.concat([head, name, packed, entry, name, end]);
}
