import { createElement } from 'react';
import { renderToStaticMarkup } from 'react-dom/server';
import fc from 'fast-check';
import ReactMarkdown from 'react-markdown';
import remarkGfm from 'remark-gfm';
import { splitBlocks } from './split-blocks.ts';

/** Without blank lines at the end of code: whether an item ends before them depends on what follows. */
const html = (text: string): string =>
  renderToStaticMarkup(createElement(ReactMarkdown, { remarkPlugins: [remarkGfm] }, text)).replaceAll(
    /\n+<\/code>/g,
    '</code>',
  );

test.each<[string, string[]]>([
  ['splits paragraphs, and keeps blank lines with the one before', ['one\n \n\n', 'two\n']],
  ['splits at line ends of every kind', ['one\r\n\r\n', 'two\r\r', 'three']],
  ['keeps a fence whole', ['```js\na\n\nb\n```\n\n', 'after']],
  ['keeps an unclosed fence whole', ['~~~\na\n\n```\n\nb']],
  ['ends a fence only at a mark that is as long', ['````\na\n```\n\nb\n````\n\n', 'after']],
  ['keeps a loose list with nested code whole', ['- a\n\n  ```\n  x\n\n  y\n  ```\n\n- b\n\n  more\n\n', 'after']],
  ['ends the fence of an item with its list', ['1. a\n\n   ```\n   x\n\n', 'after\n\n', 'more']],
  ['takes a fence at column 0 after a list for its own', ['- a\n```\nx\n\ny\n```\n\n', 'after']],
  ['keeps a table whole', ['before\n\n', '| a |\n|---|\n| b |\n\n', 'after']],
  ['keeps the paragraphs of a footnote together', ['[^1]: a\n\n    b\n\n', 'after']],
  ['takes a rule for no list', ['* * *\n\n', '- a']],
  ['returns nothing for nothing', []],
])('%s', (_, blocks) => {
  expect(splitBlocks(blocks.join(''))).toEqual(blocks);
});

const LINES = [
  'text',
  'more',
  '- item',
  '+ other',
  '  in it',
  '1. one',
  '   in one',
  '> quote',
  '# head',
  '* * *',
  '---',
];
const CODE = [
  '```',
  '  ```',
  '   ````',
  '    ```',
  '~~~ js',
  '- ```',
  '- ```',
  '    code',
  '\tcode',
  '| a | b |',
  '|---|---|',
  '',
];

test('renders blocks one by one as the whole text', () => {
  const texts = fc.array(fc.oneof(fc.constantFrom(...LINES), fc.constantFrom(...CODE), fc.constant('')), {
    maxLength: 14,
  });
  fc.assert(
    fc.property(texts, (lines) => {
      const text = lines.join('\n');
      const blocks = splitBlocks(text);
      expect(blocks.join('')).toBe(text);
      expect(blocks.map(html).filter(Boolean).join('\n')).toBe(html(text));
    }),
    { numRuns: 300 },
  );
});
