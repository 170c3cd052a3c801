import { memo, useMemo, type ReactNode } from 'react';
import ReactMarkdown, { type Components, type ExtraProps, type Options } from 'react-markdown';
import remarkGfm from 'remark-gfm';
import remend from 'remend';
import { useCopy } from '../components/copy.ts';
import {
  ELEMENTS,
  isAddress,
  isParsable,
  rehypeClean,
  remarkHtmlAsText,
  safeLink,
  textOf,
  withoutDirections,
} from './markdown-rules.ts';
import { splitBlocks } from './split-blocks.ts';
import classes from './markdown.module.css';

interface MarkdownProps {
  text: string;
  /** Whether more text will follow. */
  isStreaming: boolean;
}

/**
 * Safe Markdown of a model's text. HTML appears as text, no remote content is loaded, and links show their host.
 *
 * While the text streams, only its last block is parsed again. References across blocks work once the text is complete. Code has no
 * syntax highlighting. Text appears as plain text if the parser throws, or if it is too long or too deep (`isParsable`).
 */
export function Markdown({ text, isStreaming }: MarkdownProps) {
  const blocks = useMemo(() => (isStreaming ? splitBlocks(text) : [text]), [text, isStreaming]);
  const isTooLong = !isParsable(text, false);
  return (
    <div className={classes.markdown}>
      {(isTooLong ? [text] : blocks).map((block, index) => (
        <Block key={index} text={block} isStreaming={isStreaming} isLast={index === blocks.length - 1} />
      ))}
    </div>
  );
}

interface BlockProps extends MarkdownProps {
  isLast: boolean;
}

const Block = memo(function Block({ text, isStreaming, isLast }: BlockProps) {
  const plain = <div className={classes.plain}>{withoutDirections(text)}</div>;
  if (!isParsable(text, isStreaming)) return plain;
  const isOpen = isStreaming && isLast;
  try {
    // Called as a function, because an error of the parser can be caught only here. Incomplete links become text.
    return ReactMarkdown({ ...options, children: isOpen ? remend(text, { linkMode: 'text-only' }) : text });
  } catch (error) {
    reportError(error);
    return plain;
  }
});

type Props = ExtraProps & { children?: ReactNode };

function Link({ node, href = '', children }: Props & { href?: string | undefined }) {
  // Elements have no ids, so a link back to the text would not work.
  if (!node || 'dataFootnoteBackref' in node.properties) return null;
  const link = safeLink(href);
  if (!link) return children;
  const text = textOf(node).trim();
  return (
    <>
      <a href={link.href} target="_blank" rel="noopener noreferrer">
        <bdi>{text === '' ? link.target : children}</bdi>
      </a>
      {text !== '' && !isAddress(text, link) && <bdi className={classes.target}> ({link.target})</bdi>}
    </>
  );
}

/** A note in place of an image. Loading the image would send the text in its address to a foreign server. */
function ImageNote({ src, alt }: { src?: string | Blob | undefined; alt?: string | undefined }) {
  const link = typeof src === 'string' ? safeLink(src) : undefined;
  const note = link ? `Image not loaded: ${link.target}` : 'Image not loaded';
  const name = withoutDirections(alt ?? '');
  return <span className={classes.image}>{name === '' ? note : `${name} (${note})`}</span>;
}

function CodeBlock({ node }: Props) {
  const code = node?.children[0];
  const text = code ? textOf(code).replace(/\n+$/, '') : '';
  const [name = ''] = code?.type === 'element' ? [code.properties.className].flat() : [];
  const language = withoutDirections(String(name)).replace(/^language-/, '');
  const { copied, copy } = useCopy(text);
  return (
    <div className={classes.code}>
      <div className={classes.bar}>
        <span className={classes.language}>{language}</span>
        <button type="button" onClick={copy} aria-label={copied ? 'Copied' : 'Copy code'}>
          {copied ? 'Copied' : 'Copy'}
        </button>
      </div>
      <pre tabIndex={0} role="group" aria-label={language === '' ? 'Code' : `Code in ${language}`}>
        <code>{text}</code>
      </pre>
    </div>
  );
}

function Table({ children }: Props) {
  return (
    <div className={classes.scroll} role="group" aria-label="Table" tabIndex={0}>
      <table>{children}</table>
    </div>
  );
}

function Task({ checked = false }: { checked?: boolean | undefined }) {
  return <input type="checkbox" disabled checked={checked} aria-label={checked ? 'Done' : 'Not done'} />;
}

const components: Components = {
  a: Link,
  img: ImageNote,
  input: Task,
  pre: CodeBlock,
  table: Table,
};

const options: Options = {
  allowedElements: ELEMENTS,
  components,
  rehypePlugins: [rehypeClean],
  remarkPlugins: [remarkGfm, remarkHtmlAsText],
  unwrapDisallowed: true,
  urlTransform: (address) => safeLink(address)?.href,
};
