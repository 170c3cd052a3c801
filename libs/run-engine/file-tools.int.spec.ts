import { FILE_TOOLS, NoRoom, type StepContext, type StepEvent, type TranscriptMessage } from '#agents';
import { storeAttachment } from '#files';
import { ByteBudget } from '#platform';
import { docxOf, pdfOf } from '#testing';
import { makeWorld, type WorkerOptions, type World } from './engine.testing.ts';
import { scripted, scriptedHarness } from './scripted-harness.testing.ts';

// Real: an engine, PostgreSQL, bytes on disk, and the thread that reads documents.

let world: World;
beforeAll(async () => {
  world = await makeWorld({ folderLimits: { maxFiles: 10, maxBytes: 10_000, maxFileBytes: 1_000 } });
});
afterAll(() => world.close());

type Call = [toolName: string, toolInput: Record<string, unknown>];
type ToolMessage = Extract<TranscriptMessage, { role: 'tool' }>;

/** The file types that an earlier release stored, which trusted names. */
type Attached = [name: string, bytes: Uint8Array | string, storedType?: string];

/** Executes a Run that makes these calls, one after the other. Returns the result of each. */
async function use(calls: Call[], attached: Attached[] = [], options: WorkerOptions = {}): Promise<ToolMessage[]> {
  const results = (transcript: StepContext['transcript']) => transcript.filter((entry) => entry.role === 'tool');
  let told: ToolMessage[] = [];
  async function* step({ transcript }: StepContext): AsyncGenerator<StepEvent> {
    told = results(transcript);
    const next = calls[told.length];
    const toolCalls = next === undefined ? [] : [{ toolName: next[0], toolInput: next[1] }];
    yield { type: 'message', text: '', toolCalls };
  }
  const { engine } = await world.makeWorker({ harnesses: [scriptedHarness(step, [...FILE_TOOLS])], ...options });
  const said = await world.say('x', scripted);
  for (const [name, content, storedType] of attached) {
    const bytes = typeof content === 'string' ? Buffer.from(content) : content;
    const stored = await storeAttachment(world.blobs, { name, bytes, maxBytes: 64 * 1024 * 1024 });
    const file = storedType === undefined ? stored : { ...stored, mime_type: storedType };
    await world.attach(said.threadId, file);
  }
  await engine.executeJob(said.job);
  expect((await world.summary(said.runId)).status).toBe('completed');
  return told;
}

const textsOf = (told: ToolMessage[]) => told.map(({ outcome, result }) => [outcome, result]);

describe('the file tools', () => {
  it('write, list, read, edit and delete', async () => {
    const told = await use([
      ['list_files', {}],
      ['write_file', { path: './docs/plan.md', content: '# Plan\n\n1. Begin\n' }],
      ['edit_file', { path: 'docs/plan.md', old_text: '1. Begin', new_text: '1. Begin\n2. End' }],
      ['read_file', { path: 'docs/plan.md' }],
      ['write_file', { path: 'notes.txt', content: '' }],
      ['list_files', {}],
      ['list_files', { path: '/docs/' }],
      ['delete_file', { path: 'docs/plan.md' }],
      ['list_files', { path: 'docs' }],
      ['read_file', { path: 'notes.txt' }],
      ['write_file', { path: '.drafts/a.txt', content: '' }],
      ['list_files', { path: '.drafts' }],
      ['list_files', { path: '.' }],
    ]);
    expect(textsOf(told)).toEqual([
      ['ok', 'There are no files.'],
      ['ok', 'Wrote docs/plan.md, 17 bytes.'],
      ['ok', 'Replaced 1 occurrence in docs/plan.md.'],
      ['ok', '# Plan\n\n1. Begin\n2. End\n'],
      ['ok', 'Wrote notes.txt, 0 bytes.'],
      ['ok', 'docs/plan.md (24 bytes, text/markdown)\nnotes.txt (0 bytes, text/plain)'],
      ['ok', 'docs/plan.md (24 bytes, text/markdown)'],
      ['ok', 'Deleted docs/plan.md.'],
      ['ok', 'There are no files in docs.'],
      ['ok', '[notes.txt is empty.]'],
      ['ok', 'Wrote .drafts/a.txt, 0 bytes.'],
      ['ok', '.drafts/a.txt (0 bytes, text/plain)'],
      ['ok', '.drafts/a.txt (0 bytes, text/plain)\nnotes.txt (0 bytes, text/plain)'],
    ]);
  });

  it('report invalid calls as errors, and then change nothing', async () => {
    const told = await use(
      [
        ['read_file', { path: 'nowhere.txt' }],
        ['read_file', { path: '../../etc/passwd' }],
        ['write_file', { path: 'attachments/a.txt', content: 'x' }],
        ['edit_file', { path: 'attachments/a.txt', old_text: 'a', new_text: 'b' }],
        ['delete_file', { path: 'attachments/a.txt' }],
        ['delete_file', { path: 'b.txt' }],
        ['write_file', { path: 'b.txt', content: 'b b' }],
        ['edit_file', { path: 'b.txt', old_text: 'b', new_text: 'c' }],
        ['edit_file', { path: 'b.txt', old_text: 'b', new_text: 'c', replace_all: true }],
        ['write_file', { path: 'large.txt', content: 'x'.repeat(1_001) }],
        ['list_files', {}],
      ],
      [['a.txt', 'a']],
    );
    expect(textsOf(told)).toEqual([
      ['error', 'There is no file nowhere.txt.'],
      ['error', 'The path has a “.” or “..” part.'],
      ['error', 'attachments/ and artifacts/ are read-only.'],
      ['error', 'attachments/a.txt is read-only.'],
      ['error', 'attachments/ and artifacts/ are read-only.'],
      ['error', 'There is no file b.txt.'],
      ['ok', 'Wrote b.txt, 3 bytes.'],
      ['error', expect.stringContaining('more than once')],
      ['ok', 'Replaced 2 occurrences in b.txt.'],
      ['error', 'A file can have at most 1000 bytes.'],
      ['ok', 'attachments/a.txt (1 bytes, text/plain, read-only)\nb.txt (3 bytes, text/plain)'],
    ]);
  });

  it('report an error if there is no memory for a whole file, and still read parts', async () => {
    let held = 0;
    const limits = { process: 8_000, share: 8_000, small: 4_500 };
    const budget = new ByteBudget(limits, (bytes) => (held = bytes));
    const told = await use(
      [
        ['write_file', { path: 'b.txt', content: 'b'.repeat(1_000) }],
        ['edit_file', { path: 'b.txt', old_text: 'b', new_text: 'ccc', replace_all: true }],
        ['edit_file', { path: 'b.txt', old_text: 'b'.repeat(1_000), new_text: 'c' }],
        ['read_file', { path: 'attachments/a.pdf' }],
        ['read_file', { path: 'attachments/long.txt', limit: 1 }],
      ],
      [
        ['a.pdf', Buffer.concat([pdfOf(['text']), Buffer.alloc(5_000, ' ')])],
        ['long.txt', `first\n${'x'.repeat(50_000)}`],
      ],
      { memory: { budget } },
    );
    const noRoom = ['error', new NoRoom(0).message];
    const [written, grown, edited, document, text] = textsOf(told);
    expect([grown, document]).toEqual([noRoom, noRoom]);
    expect([written, edited]).toEqual([expect.arrayContaining(['ok']), ['ok', 'Replaced 1 occurrence in b.txt.']]);
    expect(text![1]).toMatch(/^first\n/);
    expect(held).toBe(0);
  });

  it('read text in any encoding, a part at a time, without taking a large file into memory', async () => {
    const line = `${'x'.repeat(99)}\n`;
    const large = Buffer.alloc(60 * 1024 * 1024, line);
    const last = large.byteLength / 100;
    const told = await use(
      [
        ['read_file', { path: 'attachments/large.txt', limit: 2 }],
        ['read_file', { path: 'attachments/large.txt', limit: 100_000 }],
        ['read_file', { path: 'attachments/large.txt', offset: Math.floor(last), limit: 5 }],
        ['read_file', { path: 'attachments/large.txt', offset: 1e9 }],
        ['read_file', { path: 'attachments/latin.csv' }],
        ['read_file', { path: 'attachments/windows.txt' }],
      ],
      [
        ['large.txt', large],
        ['latin.csv', Buffer.from('naïve;1\n', 'latin1')],
        ['windows.txt', Buffer.from('\uFEFFnaïve\r\n', 'utf16le')],
      ],
    );
    const [two, much, end, past, latin, windows] = told.map(({ result }) => result);
    expect(two).toBe(`${line}${line}[Lines 1 to 2 of attachments/large.txt. To continue, read with offset 3.]`);
    expect(much?.length).toBeGreaterThan(256 * 1024 - 200);
    expect(much).toMatch(/\[Lines 1 to 2621 of attachments\/large\.txt\. To continue, read with offset 2622\.\]$/);
    expect(end?.startsWith(line)).toBe(true);
    expect(past).toBe(`[attachments/large.txt has only ${Math.ceil(last)} lines.]`);
    expect([latin, windows]).toEqual([
      'naïve;1\n[The encoding of attachments/latin.csv was guessed: windows-1252.]',
      'naïve\r\n',
    ]);
  });

  it('report replaced bytes and a guessed encoding, if the text that is read has any', async () => {
    const gbk = Buffer.from('d6d0cec4b1e0c2eb', 'hex');
    const ascii = `${'x'.repeat(99)}\n`.repeat(1_000);
    const told = await use(
      [
        ['read_file', { path: 'attachments/damaged.txt' }],
        ['read_file', { path: 'attachments/damaged.txt', limit: 1 }],
        ['read_file', { path: 'attachments/late.txt', offset: 1_000 }],
        ['read_file', { path: 'attachments/gbk.txt' }],
        ['read_file', { path: 'attachments/late-gbk.txt', offset: 1_001 }],
        ['read_file', { path: 'attachments/cut.txt' }],
        ['read_file', { path: 'attachments/odd.txt' }],
        ['read_file', { path: 'attachments/real.txt' }],
        ['read_file', { path: 'attachments/quotes.txt' }],
      ],
      [
        ['damaged.txt', Buffer.concat([Buffer.from('naïve\n中文 '), Buffer.from([0xff, 0xfe]), Buffer.from('文本')])],
        ['late.txt', Buffer.concat([Buffer.from(`${ascii}é`), Buffer.from([0x80]), Buffer.from('中')])],
        ['gbk.txt', gbk],
        ['late-gbk.txt', Buffer.concat([Buffer.from(ascii), gbk])],
        ['cut.txt', Buffer.from('naïve 中').subarray(0, -1)],
        ['odd.txt', Buffer.concat([Buffer.from('\uFEFFab', 'utf16le'), Buffer.from('c')])],
        ['real.txt', 'A � in the text'],
        ['quotes.txt', Buffer.from('93486994209620803520998e0a', 'hex')],
      ],
    );
    const replaced = (count: number, label = 'utf-8') =>
      `[Invalid ${label} bytes were replaced by �, ${count} in all.]`;
    expect(told.map(({ result }) => result)).toEqual([
      `naïve\n中文 ��文本\n${replaced(2)}`,
      'naïve\n[Lines 1 to 1 of attachments/damaged.txt. To continue, read with offset 2.]',
      `${'x'.repeat(99)}\né�中\n${replaced(1)}`,
      '中文编码\n[The encoding of attachments/gbk.txt was guessed: gb18030.]',
      '中文编码\n[The encoding of attachments/late-gbk.txt was guessed: gb18030.]',
      `naïve �\n${replaced(1)}`,
      `ab�\n${replaced(1, 'utf-16le')}`,
      'A � in the text',
      '“Hi” – €5 ™Ž\n[The encoding of attachments/quotes.txt was guessed: windows-1252.]',
    ]);
  });

  it('report how many pages of a PDF have no text', async () => {
    const pdfs: Attached[] = [
      ['scan.pdf', pdfOf(['', '', ''])],
      ['page.pdf', pdfOf([' '])],
      ['partly.pdf', pdfOf(['One', '', 'Three', ''])],
      ['cover.pdf', pdfOf(['', 'Two'])],
      ['long.pdf', pdfOf(['One', ...Array<string>(25).fill('')])],
    ];
    const told = await use(
      [
        ...pdfs.map(([name]): Call => ['read_file', { path: `attachments/${name}` }]),
        ['read_file', { path: 'attachments/partly.pdf', limit: 2 }],
      ],
      pdfs,
    );
    const [scan, page, partly, cover, long, part] = told.map(({ result }) => result);
    expect(scan).toBe('[attachments/scan.pdf has no text on 3 pages. They may be scanned images.]');
    expect(page).toBe('[attachments/page.pdf has no text on 1 page. It may be a scanned image.]');
    const note = '[attachments/partly.pdf has no text on 2 pages of 4: 2, 4. They may be scanned images.]';
    expect(partly).toBe(
      `--- Page 1 of 4 ---\nOne\n\n--- Page 2 of 4 ---\n\n\n--- Page 3 of 4 ---\nThree\n\n--- Page 4 of 4 ---\n${note}`,
    );
    expect(cover).toContain('has no text on 1 page of 2: 1.');
    expect(long).toMatch(/has no text on 25 pages of 26: 2, 3, [\d, ]+ 21, …\. They may/);
    expect(part).toBe(
      `--- Page 1 of 4 ---\nOne\n[Lines 1 to 2 of attachments/partly.pdf. To continue, read with offset 3.]\n${note}`,
    );
  });

  it('find a file by its name with other spaces, if only one file matches', async () => {
    const names = [
      'Screenshot at 9.41.00\u202fAM.txt',
      'a\u00a0b.txt',
      'c\u2009d.txt',
      'cafe\u0301.txt',
      '\u200efrom phone.txt',
    ];
    const twins = ['x y.txt', 'x\u00a0y.txt', 'two\u2009names.txt', 'two\u202fnames.txt'];
    const plain = ['Screenshot at 9.41.00 AM.txt', 'a b.txt', 'c d.txt', 'caf\u00e9.txt', 'from phone.txt'];
    const told = await use(
      [...plain, 'a\u2009b.txt', 'x y.txt', 'x\u00a0y.txt', 'two names.txt', 'a  b.txt'].map((name) => [
        'read_file',
        { path: `attachments/${name}` },
      ]),
      [...names, ...twins].map((name): Attached => [name, name]),
    );
    expect(textsOf(told)).toEqual([
      ...names.map((name) => ['ok', name]),
      ['ok', 'a\u00a0b.txt'],
      ['ok', 'x y.txt'],
      ['ok', 'x\u00a0y.txt'],
      [
        'error',
        'There is no file attachments/two names.txt. The paths of 2 files differ from it only in their spaces.',
      ],
      ['error', 'There is no file attachments/a  b.txt.'],
    ]);
    const own = await use([
      ['write_file', { path: 'my\u202fnotes/to\u00a0do.txt', content: 'One' }],
      ['edit_file', { path: 'my notes/to do.txt', old_text: 'One', new_text: 'Two' }],
      ['list_files', { path: 'my notes' }],
      ['delete_file', { path: 'my notes/to do.txt' }],
    ]);
    const path = 'my\u202fnotes/to\u00a0do.txt';
    expect(textsOf(own).slice(1)).toEqual([
      ['ok', `Replaced 1 occurrence in ${path}.`],
      ['ok', `${path} (3 bytes, text/plain)`],
      ['ok', `Deleted ${path}.`],
    ]);
  });

  it('read files by their bytes, and ignore the type that an earlier release stored', async () => {
    const files: Attached[] = [
      ['x.png', 'just text', 'image/png'],
      ['gbk.jpg', Buffer.from('d6d0cec4b1e0c2eb', 'hex'), 'image/jpeg'],
      ['bytes.gif', Buffer.from([0, 1, 2]), 'image/gif'],
      ['x.pdf', 'just text', 'application/pdf'],
      ['x.docx', 'just text', 'application/vnd.openxmlformats-officedocument.wordprocessingml.document'],
      ['app.ts', 'let a;\n', 'video/mp2t'],
    ];
    const told = await use(
      files.map(([name]) => ['read_file', { path: `attachments/${name}` }]),
      files,
    );
    expect(told.map(({ result, fileIds }) => [result, fileIds])).toEqual([
      ['just text', undefined],
      ['中文编码\n[The encoding of attachments/gbk.jpg was guessed: gb18030.]', undefined],
      ['attachments/bytes.gif (3 bytes) is not text and cannot be shown.', undefined],
      ['just text', undefined],
      ['just text', undefined],
      ['let a;\n', undefined],
    ]);
  });

  it('read documents as text, show images, and say what cannot be shown', async () => {
    const png = Buffer.from(
      'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
      'base64',
    );
    const told = await use(
      ['a.pdf', 'b.docx', 'c.png', 'd.bin', 'e.pdf'].map((name) => ['read_file', { path: `attachments/${name}` }]),
      [
        ['a.pdf', pdfOf(['Hello from a PDF'])],
        ['b.docx', docxOf('<w:p><w:r><w:t>Hello from a DOCX</w:t></w:r></w:p>')],
        ['c.png', png],
        ['d.bin', Buffer.from([0, 1, 2, 3])],
        ['e.pdf', Buffer.from('%PDF-1.4 nothing more')],
      ],
    );
    expect(textsOf(told)).toEqual([
      ['ok', '--- Page 1 of 1 ---\nHello from a PDF'],
      ['ok', 'Hello from a DOCX\n'],
      ['ok', 'attachments/c.png (image/png, 70 bytes) is an image. It is shown if the model accepts images.'],
      ['ok', 'attachments/d.bin (application/octet-stream, 4 bytes) is not text and cannot be shown.'],
      ['error', expect.stringMatching(/^The text of attachments\/e\.pdf .* cannot be read\. It is broken/)],
    ]);
    expect(told.map(({ fileIds }) => fileIds?.length ?? 0)).toEqual([0, 0, 1, 0, 0]);
  });

  it('have a JSON Schema with a description of each property', () => {
    for (const { inputSchema, description } of FILE_TOOLS) {
      expect(inputSchema).toMatchObject({ type: 'object', additionalProperties: false });
      for (const property of Object.values(inputSchema['properties'] as Record<string, { description?: string }>))
        expect(property.description?.length).toBeGreaterThan(10);
      expect(description.length).toBeGreaterThan(10);
    }
  });
});
