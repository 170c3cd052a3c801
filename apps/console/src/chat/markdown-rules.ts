/** A node of parsed Markdown, with the fields that these rules use. */
export interface MarkdownNode {
  type: string;
  tagName?: string;
  value?: string;
  properties?: Record<string, unknown>;
  children?: MarkdownNode[];
}

/**
 * A larger message is shown as plain text. The parser's time grows with the square of the number of lines if each is a heading, and
 * with the square of the number of marks in a paragraph. `marks` limits the square root of the sum of these squares.
 */
const MAX_SIZE = { chars: 100_000, lines: 3_000, marks: 3_000 };
/** While text streams, a larger block is shown as plain text, because each delta parses the last block again. */
const MAX_STREAMING_SIZE = { chars: 20_000, lines: 1_000, marks: 1_500 };
/** Matches lines with so many marks (quote, list, footnote) or such a deep indent that the parser's stack could overflow. */
const TOO_DEEP = /^(?:(?:[ \t]*(?:>|(?:[-*+]|\d{1,9}[.)])(?=[ \t])|\[\^[^\]\s]+\]:)){33}|[ \t]{200})/m;
/** Matches the line below the head of a table. It sets the number of columns; the parser fills shorter rows with empty cells. */
const BELOW_HEAD = /^(?=[^-\r\n]*-)[ \t>|:*+.)\d-]*\|[ \t:-]*$/gm;
const MAX_CELLS = 50_000;
/** Marks of emphasis and links. */
const INLINE_MARK = /[*~[\]]|(?<!\w)_|_(?!\w)/g;
const LINE_END = /\r\n?|\n/;

/** Whether the text is parsed in acceptable time and depth. */
export function isParsable(text: string, isStreaming: boolean): boolean {
  const { chars, lines, marks } = isStreaming ? MAX_STREAMING_SIZE : MAX_SIZE;
  if (text.length > chars || text.split(LINE_END).length > lines || TOO_DEEP.test(text)) return false;
  const paragraphs = text.split(/(?:\r\n?|\n)[ \t]*(?:\r\n?|\n)/);
  const squares = paragraphs.map((paragraph) => (paragraph.match(INLINE_MARK)?.length ?? 0) ** 2);
  return sum(squares) <= marks ** 2 && sum(paragraphs.map(cellsOf)) <= MAX_CELLS;
}

/** Returns the maximum number of cells in the table of a paragraph. */
function cellsOf(paragraph: string): number {
  const columns = (paragraph.match(BELOW_HEAD) ?? []).map((line) => line.split('|').length);
  return columns.length === 0 ? 0 : Math.max(...columns) * paragraph.split(LINE_END).length;
}

const sum = (numbers: number[]): number => numbers.reduce((total, number) => total + number, 0);

/**
 * A remark plugin that reads HTML as text. The parser's rules for HTML would hide the addresses and Markdown in it. Their time grows
 * with the square of the number of unclosed tags.
 */
export function remarkHtmlAsText(this: { data: () => object }): void {
  const data: { micromarkExtensions?: unknown[] } = this.data();
  data.micromarkExtensions = [...(data.micromarkExtensions ?? []), { disable: { null: ['htmlFlow', 'htmlText'] } }];
}

/** Removes characters that change the direction of text, because they can make code and names look like others. */
export const withoutDirections = (text: string): string => text.replaceAll(/[\u202a-\u202e\u2066-\u2069]/g, '');

/** The elements that rendered Markdown may have. */
export const ELEMENTS =
  'a blockquote br code del em h1 h2 h3 h4 h5 h6 hr img input li ol p pre section strong sup table tbody td th thead tr ul'.split(
    ' ',
  );

/** The properties that elements keep. They keep no ids, because the ids of two messages could clash. */
const PROPERTIES: ReadonlyMap<string, readonly string[]> = new Map([
  ['a', ['href', 'dataFootnoteBackref']],
  ['code', ['className']],
  ['img', ['src', 'alt']],
  ['input', ['checked']],
  ['ol', ['start']],
]);
const CELLS = ['td', 'th'];

/** Removes other properties, and characters that change the direction of text, from the node and its descendants. */
function clean(node: MarkdownNode): void {
  const { tagName = '', properties = {} } = node;
  const kept = PROPERTIES.get(tagName) ?? [];
  if (node.value !== undefined) node.value = withoutDirections(node.value);
  if (node.properties)
    node.properties = Object.fromEntries(Object.entries(properties).filter(([name]) => kept.includes(name)));
  // The page's policy forbids style attributes, so CSS aligns cells by a data attribute.
  if (CELLS.includes(tagName) && properties.align) node.properties = { dataAlign: properties.align };
  node.children?.forEach(clean);
}

/** The heading level of a message on the page. Headings in its text start one level lower. */
const LEVEL_ABOVE = 2;

/** Renumbers headings so that they start below those of the page and skip no level. Their look stays the same. */
function levelHeadings(tree: MarkdownNode): void {
  let level = LEVEL_ABOVE;
  const visit = (node: MarkdownNode): void => {
    const [, depth] = /^h([1-6])$/.exec(node.tagName ?? '') ?? [];
    if (depth !== undefined) {
      level = Math.min(LEVEL_ABOVE + Number(depth), level + 1, 6);
      Object.assign(node, { tagName: `h${level}`, properties: { dataDepth: depth } });
    }
    node.children?.forEach(visit);
  };
  visit(tree);
}

/** A rehype plugin that cleans a tree in place. */
export const rehypeClean = () => (tree: MarkdownNode) => {
  clean(tree);
  levelHeadings(tree);
};

/** Returns the text of a node. Uses the alternative text of an image. */
export function textOf({ tagName, value = '', properties, children = [] }: MarkdownNode): string {
  if (tagName !== 'img') return value + children.map(textOf).join('');
  return typeof properties?.alt === 'string' && properties.alt !== '' ? properties.alt : 'image';
}

export interface SafeLink {
  href: string;
  /** The host in ASCII, with its port, or the address of a mailbox. */
  target: string;
}

const MAILBOX = /^[\w.+-]+@[\w.-]+$/;

/** Longer addresses are no links: many references to one long address would make a huge page. Characters. */
const MAX_ADDRESS = 2_000;

/** Returns the link of an address. Returns undefined for relative addresses, credentials and schemes other than HTTP and mail. */
export function safeLink(address: string): SafeLink | undefined {
  if (address.length > MAX_ADDRESS || !URL.canParse(address)) return undefined;
  const { protocol, username, password, host, pathname, href } = new URL(address);
  // Drops the query, because it could add hidden recipients and a text.
  if (protocol === 'mailto:')
    return MAILBOX.test(pathname) ? { href: `mailto:${pathname}`, target: pathname } : undefined;
  const isAllowed = ['http:', 'https:'].includes(protocol) && username === '' && password === '';
  return isAllowed ? { href, target: host } : undefined;
}

/** Whether the text of a link is its address. Then the link needs no note about its target. */
export function isAddress(text: string, { href }: SafeLink): boolean {
  const addresses = ['', 'https://', 'http://', 'mailto:'].map((scheme) => safeLink(scheme + text)?.href);
  return /^[\x21-\x7e]+$/.test(text) && addresses.includes(href);
}
