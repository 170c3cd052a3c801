import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { run } from './cli.testing.ts';
import { EXIT } from './exit-codes.ts';

const ID = '01JD0000000000000000000000';

/** Tests where exports and downloads are written; test/operations/operators.e2e.spec.ts tests their content. Real: the disk. */
describe('thread export --output', () => {
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'spool-export-'));
  });
  afterAll(() => rm(folder, { recursive: true }));

  const exportTo = (output: string, events: object[], expected = events.length) =>
    run(['thread', 'export', ID, '--output', output], { getThread: { events: expected }, exportThread: events });

  test('the bytes of a download are written as they are', async () => {
    const [one, two] = [Buffer.from([0, 255, 10]), Buffer.from([13, 128])];
    const output = join(folder, 'download');
    const args = ['file', 'download', ID, '--output', output];
    expect(await run(args, { downloadFile: [one, two] })).toMatchObject({ code: EXIT.done, out: '', err: '' });
    expect(await readFile(output)).toEqual(Buffer.concat([one, two]));
    await rm(output);
  });

  test('an answer that was cut off leaves the file as it was', async () => {
    const output = join(folder, 'thread.ndjson');
    await writeFile(output, 'as it was');
    const cut = await exportTo(output, [{ version: 1 }], 2);
    expect(cut).toMatchObject({ code: EXIT.away, err: expect.stringContaining('only 1 of 2 events') as string });
    expect(await readFile(output, 'utf8')).toBe('as it was');
    expect((await exportTo(output, [{ version: 1 }])).code).toBe(EXIT.done);
    expect(await readFile(output, 'utf8')).toBe('{"version":1}\n');
    expect(await readdir(folder)).toEqual(['thread.ndjson']);
  });

  test.each([
    ['a folder', 'folder', 'EISDIR'],
    ['below a folder that is not there', 'none/x', 'ENOENT'],
  ])('%s is refused in one line, and nothing is left behind', async (_, name, why) => {
    await mkdir(join(folder, 'folder'), { recursive: true });
    const before = await readdir(folder);
    const { code, err } = await exportTo(join(folder, name), [{ version: 1 }]);
    expect({ code, err }).toEqual({
      code: EXIT.usage,
      err: expect.stringMatching(new RegExp(`^[^\\n]+ cannot be written: ${why}\\.\\n$`)) as string,
    });
    expect(await readdir(folder)).toEqual(before);
  });
});
