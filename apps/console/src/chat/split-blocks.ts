/** The start of a fenced code block. A fence of backticks has no backtick after it. */
const FENCE = /^ {0,3}(`{3,}(?=[^`]*$)|~{3,})/;
/** The start of a list item: its indent, its mark and the gap before its content. */
const ITEM = /^( {0,3})([-*+]|\d{1,9}[.)])( +|$)/;
const RULE = /^ {0,3}(?:(?:- *){3,}|(?:\* *){3,}|(?:_ *){3,})$/;
/** Headings and quotes. Like fences and rules, they end a list even without a blank line. */
const INTERRUPTS = /^ {0,3}(?:#{1,6}(?: |$)|>)/;
const LINE = /[^\r\n]*(?:\r\n?|\n)|[^\r\n]+$/g;

/** Returns the column where the content of a list item begins, or 0 for a line that begins no item. */
function contentColumn(line: string): number {
  const [, indent = '', mark = '', gap = ''] = RULE.test(line) ? [] : (ITEM.exec(line) ?? []);
  // A gap of more than four spaces is one space, followed by indented code.
  const width = gap.length >= 1 && gap.length <= 4 ? gap.length : 1;
  return mark === '' ? 0 : indent.length + mark.length + width;
}

const closes = (line: string, fence: string): boolean =>
  /^ {0,3}(`+|~+) *$/.exec(line)?.[1]?.startsWith(fence) === true;

interface Position {
  /** The column where the content of the current list item begins. 0 outside of a list. */
  column: number;
  /** The mark of the open fence. */
  fence: string | undefined;
  isInParagraph: boolean;
}

const indentOf = (line: string): number => line.search(/[^ ]/);

/** Returns the position after a line. */
function pass(line: string, { column, fence, isInParagraph }: Position): Position {
  const indent = indentOf(line);
  if (indent === -1) return { column, fence, isInParagraph: false };
  if (fence !== undefined && indent >= column) {
    const isOpen = !closes(line.slice(column), fence);
    return { column, fence: isOpen ? fence : undefined, isInParagraph: false };
  }
  const interrupts = [FENCE, RULE, INTERRUPTS].some((pattern) => pattern.test(line));
  const itemColumn = contentColumn(line);
  const isInItem = column > 0 && indent >= column;
  // Markdown calls this a lazy line: it continues the item's paragraph without the indent.
  const isLazy = !isInItem && isInParagraph && itemColumn === 0 && !interrupts;
  const after = isInItem || isLazy ? column : itemColumn;
  const opened = isLazy ? undefined : FENCE.exec(line.slice(after))?.[1];
  return { column: after, fence: opened, isInParagraph: !interrupts && opened === undefined };
}

/** Whether a line after a blank line starts a block. Returns false if this is uncertain, because larger blocks are still correct. */
const isStart = (line: string, { column, fence }: Position): boolean =>
  indentOf(line) === 0 && (column === 0 ? fence === undefined : contentColumn(line) === 0);

/**
 * Splits Markdown into blocks that can be parsed one by one. Joining the blocks returns the text. Later text changes only the last
 * block, or adds an item to the list before it.
 *
 * Splits at a blank line if the next line starts at column 0 and continues neither a fence nor a list. Ignores definitions of links
 * and footnotes, so a reference to another block does not work.
 */
export function splitBlocks(text: string): string[] {
  const starts: number[] = [];
  let at = 0;
  let isAfterBlank = false;
  let position: Position = { column: 0, fence: undefined, isInParagraph: false };
  for (const raw of text.match(LINE) ?? []) {
    const line = raw.replace(/[\r\n]+$/, '').replaceAll('\t', '    ');
    if (at === 0 || (isAfterBlank && isStart(line, position))) starts.push(at);
    position = pass(line, position);
    isAfterBlank = indentOf(line) === -1;
    at += raw.length;
  }
  return starts.map((start, index) => text.slice(start, starts[index + 1]));
}
