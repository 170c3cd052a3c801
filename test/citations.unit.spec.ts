import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';

const ROOT = join(import.meta.dirname, '..');

/**
 * Forms of citation that no reader can follow. They name a document outside the repository, or a number of a section
 * instead of an anchor. Sections of an RFC are cited by number.
 */
const RETIRED = [
  /(?<!\bRFC \d{3,5}, )\bsections? \d/i,
  /§ ?\d/,
  /\bdecisions(?:\.md)?`?, amendments/i,
  /\b(?:design|quality|house|language|style-examples)\.md\b/,
  /\b(?:design|quality)[,:] (?:section|[FI]\d)/i,
  /\bthe design (?:has|says|wants)\b|\b(?:of|by) the design\b/i,
  /(?<!\bspec\/)\b(?:decisions|agent-threads-api)\.md\b/,
  /(?:\.\.|\/work)\/shared\/(?:spec\b|[\w-]+\.md\b)/,
  // Issues of this project are not in the repository. Link to those of other projects.
  /\bissues? \d/i,
];

/** A page that code or prose cites from the root: `docs/api/errors.md#reasons`. */
const CITATION = /(?<![\w./-])(?<path>docs\/[\w./-]+?\.md)(?:#(?<anchor>[\w-]+))?/g;

/** A file of an agent in examples and tests, and no page of ours. */
const FILE_OF_AGENTS = 'docs/plan.md';

/** A link of Markdown to a file or to a heading of its own page. */
const LINK = /\]\((?![a-z]+:)(?<path>[^)\s#]*)(?:#(?<anchor>[^)\s]*))?(?: "[^"]*")?\)/g;

/** The path and the text of each file that is tracked or about to be. The specification itself is copied as it is. */
const files = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], { cwd: ROOT })
  .toString()
  .split('\0')
  .filter((file) => file !== '' && !file.endsWith('package-lock.json') && existsSync(join(ROOT, file)))
  .map((file) => ({ file, text: readFileSync(join(ROOT, file), 'utf8') }))
  .filter(({ text }) => !text.includes('\0'));
// This file has examples of the retired forms, and a released migration never changes.
const EXEMPT = /^docs\/spec\/|^test\/citations\.unit\.spec\.ts$|^libs\/event-store\/migrations\/0001-/;
const ownFiles = files.filter(({ file }) => !EXEMPT.test(file));
const pages = files.filter(({ file }) => file.endsWith('.md'));

const withoutCode = (page: string): string => page.replaceAll(/^( *)(```|~~~)[^]*?^\1\2$/gm, '');

/** Returns the anchors of a page, as GitHub makes them of headings, and those that the page sets itself. */
function anchorsOf(page: string): Set<string> {
  const anchors = new Set([...page.matchAll(/<a id="([^"]+)">/g)].map(([, id = '']) => id));
  for (const [, heading = ''] of withoutCode(page).matchAll(/^#+ (.*)$/gm)) {
    const words = heading.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1').toLowerCase();
    const slug = words.replaceAll(/[^\p{L}\p{N}_\s-]/gu, '').replaceAll(' ', '-');
    let anchor = slug;
    for (let count = 1; anchors.has(anchor); count++) anchor = `${slug}-${count}`;
    anchors.add(anchor);
  }
  return anchors;
}
const anchors = new Map(pages.map(({ file, text }) => [file, anchorsOf(text)]));

const isThere = (path: string, anchor: string | undefined): boolean =>
  existsSync(join(ROOT, path)) && (anchor === undefined || (anchors.get(path)?.has(anchor) ?? !path.endsWith('.md')));

/** Joins lines, without the marks of comments, because a citation can be wrapped. */
const joined = (text: string): string => text.replaceAll(/\s*\n[ \t]*(?:\*(?!\/)|\/\/|--|#|>)?[ \t]*/g, ' ');

it('each page that a file cites exists and has the anchor', () => {
  const citations = files.flatMap(({ file, text }) =>
    [...text.matchAll(CITATION)].map(([citation, path = '', anchor]) => ({ file, citation, path, anchor })),
  );
  expect(citations.length).toBeGreaterThan(100);
  const broken = citations.filter(({ path, anchor }) => path !== FILE_OF_AGENTS && !isThere(path, anchor));
  expect(broken.map(({ file, citation }) => `${file}: ${citation}`)).toEqual([]);
});

it('each link of a page leads to a file and to a heading that exist', () => {
  const broken = pages.flatMap(({ file, text }) =>
    [...withoutCode(text).matchAll(LINK)]
      .filter(([, path = '', anchor]) => !isThere(path === '' ? file : normalize(join(dirname(file), path)), anchor))
      .map(([link]) => `${file}: ${link}`),
  );
  expect(broken).toEqual([]);
});

it('no file cites a document that is not in the repository', () => {
  const found = ownFiles.flatMap(({ file, text }) => {
    const words = joined(text);
    return RETIRED.flatMap((form) => form.exec(words) ?? []).map((citation) => `${file}: ${citation}`);
  });
  expect(found).toEqual([]);
});

it.each([
  '// The order of decisions, section 2.',
  '/** Few at a time (design,\n * section 5). */',
  '-- Below 30 s (quality, F3).',
  'test("decisions §3: cancelled is stored at once"',
  'The invariants of quality.md hold.',
  'As decisions.md says.',
  'It was slower (issue 18).',
])('finds a citation that leads nowhere: %j', (text) => {
  expect(RETIRED.some((form) => form.test(joined(text)))).toBe(true);
});

it.each([
  '/** The order of the checks (docs/spec/decisions.md#check-order). */',
  '// Ranges are defined for GET only (RFC 9110, section 14.2).',
  '[time limits](../spec/decisions.md#time-limits)',
])('accepts a citation that leads somewhere: %j', (text) => {
  expect(RETIRED.some((form) => form.test(joined(text)))).toBe(false);
});
