/** A node of the parsed text, of the kinds that matter here. */
export interface MarkdownNode {
  type: string;
  tagName?: string;
  value?: string;
  properties?: Record<string, unknown>;
  children?: MarkdownNode[];
}

/**
 * A larger message is plain text. The parser's time grows with the square of the number of lines, if each is a heading, and of the
 * number of marks in a paragraph. `marks` limits the root of the sum of their squares over all paragraphs.
 */
const MAX_SIZE = { chars: 100_000, lines: 3_000, marks: 3_000 };
/** While text streams in, a larger block is plain text, because each delta parses the last block again. */
const MAX_STREAMING_SIZE = { chars: 20_000, lines: 1_000, marks: 1_500 };
/** The marks (quote, list, footnote) or the indent of a line that is in too many containers for the parser's stack. */
const TOO_DEEP = /^(?:(?:[ \t]*(?:>|(?:[-*+]|\d{1,9}[.)])(?=[ \t])|\[\^[^\]\s]+\]:)){33}|[ \t]{200})/m;
/** The columns of a table are counted in the line below its head. Short rows are filled up to that number. */
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

/** Returns how many cells the table of a paragraph has at most. */
function cellsOf(paragraph: string): number {
  const columns = (paragraph.match(BELOW_HEAD) ?? []).map((line) => line.split('|').length);
  return columns.length === 0 ? 0 : Math.max(...columns) * paragraph.split(LINE_END).length;
}

const sum = (numbers: number[]): number => numbers.reduce((total, number) => total + number, 0);

/**
 * A plugin of remark that reads HTML as text. The parser's rules for HTML would only hide addresses and Markdown in it, and their
 * time grows with the square of the number of unclosed tags.
 */
export function remarkHtmlAsText(this: { data: () => object }): void {
  const data: { micromarkExtensions?: unknown[] } = this.data();
  data.micromarkExtensions = [...(data.micromarkExtensions ?? []), { disable: { null: ['htmlFlow', 'htmlText'] } }];
}

/** Removes the characters that change the direction of text, because they can make code and names read as others. */
export const withoutDirections = (text: string): string => text.replaceAll(/[\u202a-\u202e\u2066-\u2069]/g, '');

/** The elements that Markdown may become. */
export const ELEMENTS =
  'a blockquote br code del em h1 h2 h3 h4 h5 h6 hr img input li ol p pre section strong sup table tbody td th thead tr ul'.split(
    ' ',
  );

/** The properties that elements keep. Ids are not among them, so those of messages cannot clash. */
const PROPERTIES: ReadonlyMap<string, readonly string[]> = new Map([
  ['a', ['href', 'dataFootnoteBackref']],
  ['code', ['className']],
  ['img', ['src', 'alt']],
  ['input', ['checked']],
  ['ol', ['start']],
]);
const CELLS = ['td', 'th'];

/** Removes properties that are not allowed, and control characters of direction, from the node and all below it. */
function clean(node: MarkdownNode): void {
  const { tagName = '', properties = {} } = node;
  const kept = PROPERTIES.get(tagName) ?? [];
  if (node.value !== undefined) node.value = withoutDirections(node.value);
  if (node.properties)
    node.properties = Object.fromEntries(Object.entries(properties).filter(([name]) => kept.includes(name)));
  // An attribute of style would break the page's policy.
  if (CELLS.includes(tagName) && properties.align) node.properties = { dataAlign: properties.align };
  node.children?.forEach(clean);
}

/** Messages stand below headings of the page with this level. */
const LEVEL_ABOVE = 2;

/** Gives headings levels that begin below those of the page and leave none out. They keep their look. */
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

/** A plugin of rehype that cleans a tree in place. */
export const rehypeClean = () => (tree: MarkdownNode) => {
  clean(tree);
  levelHeadings(tree);
};

/** Returns the text of a node. An image counts as its alternative text. */
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

/** Longer addresses make no link. A reference repeats its address in each link. Characters. */
const MAX_ADDRESS = 2_000;

/** Returns the link that an address may become. Undefined for relative addresses, credentials and other schemes. */
export function safeLink(address: string): SafeLink | undefined {
  if (address.length > MAX_ADDRESS || !URL.canParse(address)) return undefined;
  const { protocol, username, password, host, pathname, href } = new URL(address);
  // Without its query, which could add hidden recipients and a text.
  if (protocol === 'mailto:')
    return MAILBOX.test(pathname) ? { href: `mailto:${pathname}`, target: pathname } : undefined;
  const isAllowed = ['http:', 'https:'].includes(protocol) && username === '' && password === '';
  return isAllowed ? { href, target: host } : undefined;
}

/** Whether the text of a link is its address, so that it cannot lie about the target. */
export function isAddress(text: string, { href }: SafeLink): boolean {
  const addresses = ['', 'https://', 'http://', 'mailto:'].map((scheme) => safeLink(scheme + text)?.href);
  return /^[\x21-\x7e]+$/.test(text) && addresses.includes(href);
}
