import { join } from 'node:path';

async function retiredIn(text: string): Promise<{ line: number; found: string }[]> {
  const path = join(import.meta.dirname, '../scripts/retired-words.mjs');
  const { retiredWords } = (await import(path)) as { retiredWords: typeof retiredIn };
  return retiredWords(text);
}

test.each([
  ['an identifier', 'if (isAway) retry();', 'isAway'],
  ['a comment', '// The database is away.', 'away'],
  ['a string', "const text = 'it is done in vain';", 'in vain'],
  ['a test name', "it('goes on where it stopped', () => {});", 'goes on'],
  ['the opening of a docstring', '/** What an append stores. */', '/** What'],
  ['the opening of a comment in SQL', '-- Who has claimed the Run.', '-- Who'],
])('refuses a retired word in %s', async (_place, text, found) => {
  expect(await retiredIn(`\n${text}`)).toContainEqual(expect.objectContaining({ line: 2, found }));
});

test('accepts published names and current words', async () => {
  expect(await retiredIn("if (queue.awaySince) return 'away'; // Returns what an append stores.")).toEqual([]);
});
