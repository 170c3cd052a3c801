import {
  Composer,
  isAlias,
  isMap,
  isNode,
  isScalar,
  isSeq,
  Lexer,
  LineCounter,
  Parser,
  visit,
  type Document,
  type ErrorCode,
  type Node,
  type Pair,
} from 'yaml';
import { BOUNDS } from '#domain';
import { agentManifestSchema, manifestFileSchema, type AgentManifest } from './manifest.ts';
import { issueText, manifestIssues, type ManifestIssue } from './manifest-issues.ts';

/** Both count from 1; columns in UTF-16 units. */
export interface Place {
  line: number;
  column: number;
}

export interface ManifestProblem extends Place {
  file: string;
  message: string;
}

/** A manifest and where in its file each part of it stands. */
export interface ManifestFile {
  manifest: AgentManifest;
  /** Of the value at the path, or of what is nearest above it where the file leaves it out. */
  placeOf(path: ManifestIssue['path']): Place;
  /** What a later check, such as `Harness.checkSettings`, has found. */
  problemOf(issue: ManifestIssue): ManifestProblem;
}

export interface ParsedManifests {
  /** One a document that is not empty; none while there are problems. */
  manifests: ManifestFile[];
  /** The first 20, in the order of the file. */
  problems: ManifestProblem[];
}

export const MAX_MANIFEST_BYTES = BOUNDS.manifests.file.value;

const MAX_PROBLEMS = BOUNDS.manifests.problems.value;
const MAX_LOOKED_UP = BOUNDS.manifests.located.value;
const MAX_ENTRIES = BOUNDS.manifests.entries.value;
const MAX_LEXEMES = BOUNDS.manifests.tokens.value;
const MAX_DEPTH = BOUNDS.manifests.depth.value;
const MAX_ALIASES = BOUNDS.manifests.aliases.value;

/**
 * Reads the manifests of a file: YAML 1.2 (core schema, several documents with `---`), and so JSON too. Tells all that is
 * wrong at once, without ever showing a value: it might be a secret. Never throws.
 */
export function parseManifests(text: string, fileName: string): ParsedManifests {
  const lines = new LineCounter();
  const at = (offset: number, message: string): ManifestProblem => {
    const { line, col } = lines.linePos(offset);
    return { file: fileName, line, column: col, message };
  };
  if (Buffer.byteLength(text) > MAX_MANIFEST_BYTES) {
    return { manifests: [], problems: [{ file: fileName, line: 1, column: 1, message: 'is larger than 1 MiB' }] };
  }
  const documents = compose(text.replace(/^\uFEFF/, ''), lines);
  if ('refused' in documents) return { manifests: [], problems: [at(documents.offset, documents.refused)] };
  const read = documents.map((document) => readDocument(document, at));
  const problems = read.flatMap((result) => (Array.isArray(result) ? result : []));
  problems.sort((a, b) => a.line - b.line || a.column - b.column);
  const manifests = read.flatMap((result) => (Array.isArray(result) ? [] : [result]));
  return { manifests: problems.length > 0 ? [] : manifests, problems: problems.slice(0, MAX_PROBLEMS) };
}

/** `agents/echo.yaml:7:11 tools.0.policy: must be allow, ask or deny`. */
export function formatProblem({ file, line, column, message }: ManifestProblem): string {
  return `${file}:${line}:${column} ${message}`;
}

/** Returns the documents; stops reading at the first offset that exceeds a bound. */
function compose(text: string, lines: LineCounter): Document.Parsed[] | { refused: string; offset: number } {
  lines.addNewLine(0);
  const parser = new Parser(lines.addNewLine);
  const tokens = [];
  let lexemes = 0;
  for (const lexeme of new Lexer().lex(text)) {
    tokens.push(...parser.next(lexeme));
    const refused = excessOf(parser, ++lexemes);
    if (refused !== null) return { refused, offset: parser.offset };
  }
  tokens.push(...parser.end());
  const composer = new Composer({ version: '1.2', schema: 'core', uniqueKeys: true, logLevel: 'error' });
  return [...composer.compose(tokens)];
}

/** Returns the bound that the file exceeds so far, or null. */
function excessOf({ stack }: Parser, lexemes: number): string | null {
  if (stack.length > MAX_DEPTH) return 'is nested too deeply';
  if (lexemes > MAX_LEXEMES) return 'has too many parts';
  const top = stack.at(-1);
  return top && 'items' in top && top.items.length > MAX_ENTRIES ? `has more than ${MAX_ENTRIES} entries` : null;
}

type At = (offset: number, message: string) => ManifestProblem;

/** The manifest of a document, or its problems: none for an empty document. */
function readDocument(document: Document.Parsed, at: At): ManifestFile | ManifestProblem[] {
  const wrongSyntax = syntaxProblems(document, at);
  if (wrongSyntax.length > 0 || isEmpty(document)) return wrongSyntax;
  let value: unknown;
  try {
    value = document.toJS({ maxAliasCount: MAX_ALIASES });
  } catch (error) {
    if (!(error instanceof ReferenceError)) throw error;
    return [at(startOf(document.contents), 'has aliases that expand too much')];
  }
  const problemOf = (issue: ManifestIssue) => at(offsetOf(document, issue), issueText(issue));
  const issues = manifestIssues(manifestFileSchema, value);
  if (issues.length > 0) return issues.slice(0, MAX_LOOKED_UP).map(problemOf);
  const placeOf = (path: ManifestIssue['path']): Place => {
    const { line, column } = problemOf({ path, at: 'value', message: '' });
    return { line, column };
  };
  return { manifest: agentManifestSchema.parse(value), placeOf, problemOf };
}

/** Instead of messages that quote the file; the other ones that do so quote behind a colon. */
const UNQUOTED: Partial<Record<ErrorCode, string>> = {
  TAG_RESOLVE_FAILED: 'Unknown tag',
  BAD_COLLECTION_TYPE: 'Wrong tag',
  BAD_DIRECTIVE: 'Unknown directive',
  BAD_DQ_ESCAPE: 'Invalid escape sequence',
};

function syntaxProblems(document: Document.Parsed, at: At): ManifestProblem[] {
  // A warning is a tag or a directive that we do not know.
  const problems = [...document.errors, ...document.warnings]
    .slice(0, MAX_LOOKED_UP)
    .map(({ pos, code, message }) => at(pos[0], `is not YAML: ${UNQUOTED[code] ?? message.replace(/:.*$/s, '')}`));
  const anchors = new Set<string | undefined>();
  visit(document, {
    Value: (_, { anchor }) => void anchors.add(anchor),
    Alias: (_, alias) => {
      if (!anchors.has(alias.source)) problems.push(at(startOf(alias), 'is an alias without an anchor'));
    },
  });
  return problems;
}

function isEmpty({ contents }: Document.Parsed): boolean {
  return contents === null || (isScalar(contents) && contents.value === null && contents.source === '');
}

function startOf(node: Node | null): number {
  return node?.range?.[0] ?? 0;
}

/** Where the issue's value, or its key, begins; of the nearest map or list above it where the file does not have it. */
function offsetOf(document: Document.Parsed, { path, at }: Pick<ManifestIssue, 'path' | 'at'>): number {
  let node: Node | null = document.contents;
  let offset = startOf(node);
  for (const [i, step] of path.entries()) {
    if (isAlias(node)) node = node.resolve(document) ?? null;
    const pair = isMap(node) ? node.items.find(({ key }) => keyText(key) === String(step)) : undefined;
    const child: unknown = isSeq(node) ? node.items[Number(step)] : pair?.value;
    if (pair !== undefined && isNode(pair.key) && (child === null || (at === 'key' && i === path.length - 1)))
      return startOf(pair.key);
    if (!isNode(child)) return offset;
    node = child;
    offset = startOf(node);
  }
  return offset;
}

const keyText = (key: Pair['key']): string | null => (isNode(key) ? key.toString() : null);
