import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

const LIST = 'scripts/clocks-in-tests.json';
const CLOCK = /\b(performance|Date)\.now\(|\.hrtime\b|new Date\(\)/;

/** Files that the list had once. A smaller list makes this number smaller. */
const MOST = 52;

const listed = JSON.parse(readFileSync(LIST, 'utf8')) as string[];

/** Returns the list of a commit; null if the commit is not in this clone or has no list. */
function listOf(commit: string): string[] | null {
  try {
    return JSON.parse(
      execFileSync('git', ['show', `${commit}:${LIST}`], { encoding: 'utf8', stdio: 'pipe' }),
    ) as string[];
  } catch {
    return null;
  }
}

it('lists only test files that read a clock', () => {
  expect(listed.filter((file) => !CLOCK.test(readFileSync(file, 'utf8')))).toEqual([]);
});

it('lists no more files than before', () => {
  expect(listed.length).toBeLessThanOrEqual(MOST);
});

it('lists no file that the previous release did not list', () => {
  const { commit } = JSON.parse(readFileSync('previous-release.json', 'utf8')) as { commit: string };
  const before = listOf(commit) ?? listed;
  expect(listed.filter((file) => !before.includes(file))).toEqual([]);
});
