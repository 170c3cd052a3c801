import { docxBomb, docxOf, pdfBomb, pdfOf } from '#testing';
import { extractText, type DocumentKind } from './extract-text.ts';

// Real: the thread, and what reads documents in it.

const extract = (kind: DocumentKind, bytes: Uint8Array, signal = new AbortController().signal) =>
  extractText(kind, async () => Uint8Array.from(bytes), signal);

const MEBIBYTE = 1024 * 1024;

describe('the text of a document', () => {
  it('of a PDF comes page by page', async () => {
    const text = '--- Page 1 of 2 ---\nHello\n\n--- Page 2 of 2 ---\nGoodbye';
    expect(await extract('pdf', pdfOf(['Hello', 'Goodbye']))).toEqual({ text, cut: false });
  });

  it('of a DOCX comes in lines, its tables too', async () => {
    const t = (text: string): string => `<w:r><w:t xml:space="preserve">${text}</w:t></w:r>`;
    const p = (inner: string): string => `<w:p><w:pPr><w:tabs><w:tab w:val="left"/></w:tabs></w:pPr>${inner}</w:p>`;
    const cell = (text: string): string => `<w:tc>${p(t(text))}</w:tc>`;
    const table = `<w:tbl><w:tr>${cell('a')}${cell('b')}</w:tr><w:tr>${cell('c')}${cell('d')}</w:tr></w:tbl>`;
    const body = [
      p(t('Fish &amp; chips &lt;3 &#228;&#x1F600;') + '<w:r><w:tab/></w:r>' + t('after')),
      p(`${t('one')}<w:r><w:br/></w:r>${t('two')}<w:r><w:br w:type="page"/></w:r>`),
      '<w:p><w:del><w:r><w:delText>gone</w:delText></w:r></w:del></w:p>',
      table,
      '<w:tblPr/>',
    ];
    const text = 'Fish & chips <3 ä😀\tafter\none\ntwo\n\n\na\tb\nc\td\n';
    expect(await extract('docx', docxOf(body.join('')))).toEqual({ text, cut: false });
  });

  it('is cut where it is very long', async () => {
    const long = await extract('docx', docxOf(`<w:p><w:t>${'x'.repeat(5 * MEBIBYTE)}</w:t></w:p>`));
    expect(long).toMatchObject({ cut: true });
    expect('text' in long && long.text.length).toBe(4 * MEBIBYTE);
  });

  it.each<[string, DocumentKind, () => Uint8Array]>([
    ['no PDF', 'pdf', () => Buffer.from('%PDF-1.4 nonsense')],
    ['no DOCX', 'docx', () => Buffer.from('PK nonsense')],
    ['a DOCX that says how large it is', 'docx', () => docxBomb(65 * MEBIBYTE)],
    ['a DOCX that is larger than it says', 'docx', () => docxBomb(1_000)],
  ])('is refused where it is %s', async (_, kind, make) => {
    expect(await extract(kind, make())).toEqual({ refused: 'It is broken, or not what it seems.' });
  });

  it('of a PDF that unpacks to more memory than there is for it ends, and the process goes on', async () => {
    const read = await extract('pdf', pdfBomb(1_500));
    expect(read).toEqual({ refused: 'Reading it takes too much memory.' });
    expect(await extract('pdf', pdfOf(['x']))).toMatchObject({ cut: false });
  });

  it('is given up with the Run', async () => {
    const stopping = new AbortController();
    const reading = extract('pdf', pdfOf(['x']), stopping.signal);
    stopping.abort(new Error('stopped'));
    await expect(reading).rejects.toThrow('stopped');
    expect(await extract('pdf', pdfOf(['x']))).toMatchObject({ cut: false });
  });
});
