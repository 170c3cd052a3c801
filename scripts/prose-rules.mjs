import { SentenceSplitterSyntax, splitAST } from 'sentence-splitter';

/** The textlint rules of our own. `check-prose.mjs` says what they are set to. */

/** Calls `check` with each paragraph and each table cell of a document, as a paragraph. */
function ofParagraphs({ Syntax }, check) {
  const asParagraph = (node) => ({ ...node, type: Syntax.Paragraph });
  return { [Syntax.Paragraph]: check, [Syntax.TableCell]: (node) => check(asParagraph(node)) };
}

/** Returns the text without the targets of links. */
const withoutTargets = (text) => text.replaceAll(/\]\([^)]*\)/g, ']');

/** Reports each line of prose or table cell of more than `max` characters, not counting the targets of links. */
export function lineLength(context, { max }) {
  const { RuleError, report, getSource, locator } = context;
  return ofParagraphs(context, (node) => {
    let start = 0;
    for (const line of getSource(node).split('\n')) {
      const { length } = withoutTargets(line);
      const padding = locator.at(start);
      if (length > max) report(node, new RuleError(`A line of ${length} characters; at most ${max}.`, { padding }));
      start += line.length + 1;
    }
  });
}

/** Reports each sentence of more than `maxWords` words, and each statement that begins with one of `openings`. */
export function sentences(context, { maxWords, openings }) {
  const { RuleError, report, getSource, locator } = context;
  const opening = new RegExp(`^(?:${openings.join('|')})\\b`);
  return ofParagraphs(context, (node) => {
    for (const sentence of splitAST(node).children) {
      if (sentence.type !== SentenceSplitterSyntax.Sentence) continue;
      const text = withoutTargets(getSource(sentence)).trim();
      const padding = locator.at(sentence.range[0] - node.range[0]);
      const words = text.split(/\s+/).filter((word) => /\w/.test(word)).length;
      if (words > maxWords)
        report(node, new RuleError(`A sentence of ${words} words; at most ${maxWords}.`, { padding }));
      const [word] = opening.exec(text) ?? [];
      if (word && !text.endsWith('?'))
        report(node, new RuleError(`"${word}" opens a statement; name its subject.`, { padding }));
    }
  });
}
