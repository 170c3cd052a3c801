/**
 * Checks the prose of documents, and the words of the packages in finished-packages.json: `npm run prose`, or
 * `npm run prose -- FILE ...`. Leaves out docs/spec (the contract is not ours to rewrite) and generated parts.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { TextlintKernel } from '@textlint/kernel';
import markdown from '@textlint/textlint-plugin-markdown';
import terminology from 'textlint-rule-terminology';
import { lineLength, sentences } from './prose-rules.mjs';
import { FINISHED, FOLDERS, retiredWords } from './retired-words.mjs';

const root = dirname(import.meta.dirname);
const listed = execFileSync('git', ['ls-files', '*.md', ':!docs/spec', ...FINISHED], { cwd: root, encoding: 'utf8' })
  .trim()
  .split('\n');
for (const folder of FOLDERS) {
  const found = execFileSync('git', ['ls-files', folder], { cwd: root, encoding: 'utf8' });
  if (found === '') throw new Error(`finished-packages.json: ${folder} has no files`);
}
const files = process.argv.length > 2 ? process.argv.slice(2) : listed;

const linter = new TextlintKernel();
const options = {
  ext: '.md',
  plugins: [{ pluginId: 'markdown', plugin: markdown.default }],
  rules: [
    { ruleId: 'line-length', rule: lineLength, options: { max: 200 } },
    {
      ruleId: 'sentences',
      rule: sentences,
      options: { maxWords: 30, openings: ['What', 'Who', 'Whoever', 'Whatever', 'Whose', 'Of', 'That which'] },
    },
    {
      ruleId: 'retired-phrases',
      rule: terminology,
      options: {
        defaultTerms: false,
        terms: JSON.parse(readFileSync(join(import.meta.dirname, 'retired-phrases.json'), 'utf8')),
      },
    },
  ],
};
/** Returns the generated parts of a document, as first and last line. */
function generatedParts(text) {
  const lineAt = (index) => text.slice(0, index).split('\n').length;
  const parts = text.matchAll(/<!-- Generated [^]*?<!-- End of the generated part/g);
  return [...parts].map(({ index, 0: part }) => [lineAt(index), lineAt(index + part.length)]);
}

let count = 0;
for (const file of files) {
  const text = readFileSync(resolve(root, file), 'utf8');
  if (!file.endsWith('.md')) {
    const words = retiredWords(text);
    count += words.length;
    for (const { line, column, found, instead } of words)
      console.log(`${file}:${line}:${column} "${found}" is retired; use: ${instead} (retired-words)`);
    continue;
  }
  const generated = generatedParts(text);
  const { messages } = await linter.lintText(text, { ...options, filePath: file });
  const ours = messages.filter(({ line }) => !generated.some(([first, last]) => first <= line && line <= last));
  count += ours.length;
  for (const { line, column, ruleId, message } of ours) console.log(`${file}:${line}:${column} ${message} (${ruleId})`);
}
console.log(`${files.length} files, ${count} findings`);
process.exitCode = count > 0 ? 1 : 0;
