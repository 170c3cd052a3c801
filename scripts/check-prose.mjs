/**
 * Checks the prose of documents: `npm run prose`, or `npm run prose -- FILE ...`. docs/spec holds the contract, which is
 * not ours to rewrite.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { dirname, extname, join } from 'node:path';
import { TextlintKernel } from '@textlint/kernel';
import markdown from '@textlint/textlint-plugin-markdown';
import terminology from 'textlint-rule-terminology';
import { lineLength, sentences } from './prose-rules.mjs';

const root = dirname(import.meta.dirname);
const listed = execFileSync('git', ['ls-files', '*.md', ':!docs/spec'], { cwd: root, encoding: 'utf8' })
  .trim()
  .split('\n');
const files = process.argv.length > 2 ? process.argv.slice(2) : listed;

const linter = new TextlintKernel();
const options = {
  ext: '.md',
  plugins: [{ pluginId: 'markdown', plugin: markdown.default ?? markdown }],
  rules: [
    { ruleId: 'line-length', rule: lineLength, options: { max: 200 } },
    {
      ruleId: 'sentences',
      rule: sentences,
      options: { maxWords: 30, openings: ['What', 'Who', 'Whoever', 'Whatever', 'Whose', 'Of', 'That which'] },
    },
    {
      ruleId: 'retired-phrases',
      rule: terminology.default ?? terminology,
      options: {
        defaultTerms: false,
        terms: JSON.parse(readFileSync(join(import.meta.dirname, 'retired-phrases.json'), 'utf8')),
      },
    },
  ],
};
let count = 0;
for (const file of files) {
  const { messages } = await linter.lintText(readFileSync(join(root, file), 'utf8'), { ...options, filePath: file });
  count += messages.length;
  for (const { line, column, ruleId, message } of messages)
    console.log(`${file}:${line}:${column} ${message} (${ruleId})`);
}
console.log(`${files.length} documents, ${count} findings`);
process.exitCode = count > 0 ? 1 : 0;
