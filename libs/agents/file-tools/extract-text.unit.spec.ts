import { docxBomb, docxOf, nightTest, pdfBomb, pdfOf } from '#testing';
import { createLogger } from '#platform';
import { TaskPool, type RunTask } from '#task-pool';
import { extractText, type DocumentKind } from './extract-text.ts';

// Real: the task pool and the readers of documents.

const pool = new TaskPool({ size: 2, memoryBytes: 256 * 1024 * 1024, logger: createLogger('silent', 'specs') });
afterAll(() => pool.close());

async function extract(
  kind: DocumentKind,
  bytes: Uint8Array,
  { signal = new AbortController().signal, cpuMs = 10_000, wallMs = 30_000 } = {},
) {
  const runTask: RunTask = (task, input) => {
    const limits = { ...task.limits, cpuMs, wallMs };
    return pool.run({ ...task, limits }, input, { organizationId: 'one', signal });
  };
  const load = async () => Uint8Array.from(bytes);
  const read = await extractText(kind, load, { runTask, signal });
  return 'refused' in read ? read : { ...read, text: Buffer.from(read.text).toString() };
}

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

  nightTest(
    'of a PDF that unpacks to more memory than there is for it ends, and the process goes on',
    async () => {
      // On a slow machine the product's limits of time may come first.
      const read = await extract('pdf', pdfBomb(1_500), { cpuMs: 60_000, wallMs: 90_000 });
      expect(read).toEqual({ refused: 'Reading it takes too much memory.' });
      expect(await extract('pdf', pdfOf(['x']))).toMatchObject({ cut: false });
    },
    120_000,
  );

  it('is given up with the Run', async () => {
    const stopping = new AbortController();
    const reading = extract('pdf', pdfOf(['x']), { signal: stopping.signal });
    stopping.abort(new Error('stopped'));
    await expect(reading).rejects.toThrow('stopped');
    expect(await extract('pdf', pdfOf(['x']))).toMatchObject({ cut: false });
  });

  it('is the same wherever the pieces that are unpacked end', async () => {
    const line = '<w:p><w:r><w:t>äöü &amp; &#x1F600;😀 x</w:t></w:r><w:r><w:br w:type="page"/></w:r></w:p>';
    const { text } = (await extract('docx', docxOf(line.repeat(20_000)))) as { text: string };
    expect(text === 'äöü & 😀😀 x\n\n'.repeat(20_000)).toBe(true);
  });

  it('of a DOCX that has tags that never end for 60 MB is refused', async () => {
    const refused = { refused: 'It is broken, or not what it seems.' };
    expect(await extract('docx', docxOf('<w:br '.repeat(10_000_000)))).toEqual(refused);
  });

  nightTest.each<[string, string, object]>([
    ['has tags that never end', '<w:br ', { refused: 'It is broken, or not what it seems.' }],
    ['has one endless tag', 'w:br w ', { refused: 'It is broken, or not what it seems.' }],
    ['is all breaks', '<w:br />', { cut: true }],
    ['is all empty tags', '<w:x/>', { text: '', cut: false }],
    ['is all empty texts', '<w:t>', { text: '', cut: false }],
    ['is all entities', '&amp;', { text: '', cut: false }],
    ['is all open entities', '<w:t>&#', { cut: true }],
  ])('of a DOCX that %s for 60 MB takes less than 2 s of CPU time', async (_, piece, expected) => {
    const bomb = docxOf((piece === 'w:br w ' ? '<w:br ' : '') + piece.repeat(60_000_000 / piece.length));
    expect(await extract('docx', bomb, { cpuMs: 2_000 })).toMatchObject(expected);
  });
});

it('of another organization’s document does not wait for a bomb', async () => {
  const stopping = new AbortController();
  const ended: string[] = [];
  const read = async (name: string, organizationId: string, bytes: Uint8Array): Promise<void> => {
    const context = { runTask: pool.runnerFor(organizationId), signal: stopping.signal };
    await extractText('docx', async () => Uint8Array.from(bytes), context);
    ended.push(name);
  };
  const bomb = docxOf('<w:t>'.repeat(12_000_000));
  const bombs = Array.from({ length: 3 }, () =>
    read('bomb', 'one', bomb).catch(() => expect(stopping.signal.aborted).toBe(true)),
  );
  await read('other', 'two', docxOf('<w:p><w:t>x</w:t></w:p>'));
  expect(ended.indexOf('other')).toBeLessThanOrEqual(1);
  stopping.abort();
  await Promise.all(bombs);
});
