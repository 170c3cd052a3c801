import { createLogger } from '#platform';
import { TaskPool, type RunTask } from '#task-pool';
import { measureTurns, nightTest } from '#testing';
import { editFile } from './edit-text.ts';

// Real: the task pool.

const MEBIBYTE = 1024 * 1024;
const pool = new TaskPool({ size: 2, memoryBytes: 256 * MEBIBYTE, logger: createLogger('silent', 'specs') });
// The first call loads code and starts a child.
beforeAll(() => edit('a'.repeat(MEBIBYTE), 'a', 'b'));
afterAll(() => pool.close());

async function edit(text: string, oldText: string, newText: string, replaceAll = true) {
  // Shorter limits than in production, so that an endless search ends soon.
  const runTask: RunTask = (task, input, signal) =>
    pool.run({ ...task, limits: { ...task.limits, cpuMs: 500 } }, input, { organizationId: 'one', signal });
  const context = { runTask, signal: new AbortController().signal };
  const bytes = new Uint8Array(Buffer.from(text));
  const before = process.memoryUsage.rss();
  const edited = await editFile(bytes, { oldText, newText, replaceAll, maxBytes: 5 * MEBIBYTE }, context);
  return { edited, grownBytes: process.memoryUsage.rss() - before };
}

describe('an edit of 5 MiB', () => {
  it.each<[string, Parameters<typeof edit>, object]>([
    ['of one letter, to 1.5 GB', ['a'.repeat(5 * MEBIBYTE), 'a', 'b'.repeat(300)], { refused: /1572864000 bytes/ }],
    ['of one letter, to another', ['a'.repeat(5 * MEBIBYTE), 'a', 'b'], { count: 5 * MEBIBYTE }],
    ['of one letter, to nothing', ['a'.repeat(5 * MEBIBYTE), 'a', ''], { count: 5 * MEBIBYTE }],
    [
      'whose search takes hours',
      ['a'.repeat(5 * MEBIBYTE), `${'a'.repeat(MEBIBYTE)}b${'a'.repeat(MEBIBYTE)}`, ''],
      { refused: /takes too long/ },
    ],
    [
      'of one letter in the middle',
      [`${'a'.repeat(3 * MEBIBYTE)}b${'a'.repeat(2 * MEBIBYTE - 1)}`, 'b', 'c'],
      { count: 1 },
    ],
  ])('%s, does not grow the process by its result', async (_, [text, oldText, newText], expected) => {
    const { edited, grownBytes } = await edit(text, oldText, newText);
    if ('refused' in expected)
      expect(edited).toEqual({ refused: expect.stringMatching(expected.refused as RegExp) as string });
    else expect(edited).toMatchObject(expected);
    expect(grownBytes).toBeLessThan(100 * MEBIBYTE);
  });
});

describe('an edit that is made at once', () => {
  nightTest.each<[string, Parameters<typeof edit>]>([
    ['256 KiB of one letter', ['a'.repeat(256 * 1024), 'a', 'b'.repeat(20)]],
    ['256 KiB with a long search', ['a'.repeat(256 * 1024), `${'a'.repeat(31)}b${'a'.repeat(31)}`, '']],
  ])('of %s takes a short turn', async (_, args) => {
    await measureTurns(() => edit(...args));
  });
});
