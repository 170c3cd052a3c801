import fc from 'fast-check';
import { measureTurns } from '#testing';
import { distinctNamer, folderPath, foldersOf, isReadOnlyPath } from './folder-path.ts';

const distinctNames = (names: readonly string[]): string[] => names.map(distinctNamer());

describe('the path of a file in a folder', () => {
  it.each([
    ['notes.md', 'notes.md'],
    ['./notes.md', 'notes.md'],
    ['/a/b.txt', 'a/b.txt'],
    ['a b/ä ö.txt', 'a b/ä ö.txt'],
    ['a\u0308.txt', 'ä.txt'],
    ['.hidden/..x', '.hidden/..x'],
  ])('normalizes %j to %j', (given, path) => expect(folderPath(given)).toEqual({ path }));

  it.each([
    ['', 'empty part'],
    ['/', 'empty part'],
    ['.', '“.”'],
    ['..', '“..”'],
    ['../secret', '“..”'],
    ['a/../../secret', '“..”'],
    ['/../secret', '“..”'],
    ['././a', '“.”'],
    ['//etc/passwd', 'empty part'],
    ['a//b', 'empty part'],
    ['a/ /b', 'empty part'],
    ['a/', 'empty part'],
    ['a\\..\\b', 'backslash'],
    ['a\nb', 'control character'],
    ['a\0b', 'control character'],
    ['a\u2028b', 'control character'],
    ['a\uD800', 'control character'],
  ])('refuses %j', (given, why) =>
    expect(folderPath(given)).toEqual({ refused: expect.stringContaining(why) as string }),
  );

  it('has at most 512 characters and 20 parts', () => {
    const parts = (count: number): string => Array(count).fill('a').join('/');
    for (const path of ['x'.repeat(512), '😀'.repeat(512), parts(20)]) expect(folderPath(path)).toEqual({ path });
    for (const path of ['x'.repeat(513), '😀'.repeat(513), parts(21)])
      expect(folderPath(path)).toEqual({ refused: expect.stringMatching(/512|20 parts/) as string });
  });

  it('is refused for its length before it is normalized, which takes minutes', async () => {
    const tooLong = { refused: 'is longer than 512 characters' };
    const path = `a${'\u0327\u0301'.repeat(150_000)}`;
    await measureTurns(() => expect(folderPath(path)).toEqual(tooLong), { maxMs: 50 });
    expect(folderPath('\u1F82'.normalize('NFD').repeat(512))).toEqual({ path: '\u1F82'.repeat(512) });
    expect(folderPath(`./${'\u1F82'.normalize('NFD').repeat(513)}`)).toEqual(tooLong);
  });

  const wild = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 600 }),
    fc
      .array(fc.constantFrom('.', '..', '', 'a', ' ', '\\', '\0', 'a\u0308', '…', '%2e%2e', '~'), { maxLength: 25 })
      .map((parts) => parts.join('/')),
  );

  it('never leads out of the folder for any input', () => {
    fc.assert(
      fc.property(wild, (given) => {
        const found = folderPath(given);
        if ('refused' in found) return;
        const { path } = found;
        expect(new URL(encodeURI(path).replaceAll(/[?#]/g, '_'), 'file:///root/folder/').pathname).toMatch(
          /^\/root\/folder\/./,
        );
        expect(path.split('/')).not.toContain('..');
        expect(path).not.toMatch(/^\/|\\|\0/);
        // A canonical path is its own canonical form, so no two forms name one file.
        expect(folderPath(path)).toEqual({ path });
      }),
    );
  });

  it('has folders, of which some are read-only', () => {
    expect(foldersOf('a/b/c')).toEqual(['a', 'a/b']);
    expect(foldersOf('a')).toEqual([]);
    expect(['attachments/x', 'artifacts/a/b', 'attachments'].map(isReadOnlyPath)).toEqual([true, true, true]);
    expect(['Attachments/x', 'a/attachments/x', 'attachments.txt'].map(isReadOnlyPath)).toEqual([false, false, false]);
  });
});

describe('names of files', () => {
  it('get a number before the extension if they are repeated', () => {
    expect(
      distinctNames(['a.txt', 'a.txt', 'a (2).txt', 'a.txt', 'b', 'b', '.env', '.env', 'x.tar.gz', 'x.tar.gz']),
    ).toEqual([
      ...[
        'a.txt',
        'a (2).txt',
        'a (2) (2).txt',
        'a (3).txt',
        'b',
        'b (2)',
        '.env',
        '.env (2)',
        'x.tar.gz',
        'x.tar (2).gz',
      ],
    ]);
  });

  it('become distinct parts of paths, and stay when another name follows', () => {
    const name = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 200 }),
      fc.constantFrom('a', 'a (2)', 'a (3)', '..', '/'),
    );
    fc.assert(
      fc.property(fc.array(name), name, (names, last) => {
        const distinct = distinctNames(names);
        expect(new Set(distinct).size).toBe(names.length);
        for (const part of distinct) {
          expect(folderPath(`attachments/${part}`)).toEqual({ path: `attachments/${part}` });
          expect(part).not.toContain('/');
        }
        expect(distinctNames([...names, last]).slice(0, -1)).toEqual(distinct);
      }),
    );
  });
});
