import { fileTypeFromBuffer, supportedMimeTypes } from 'file-type';
import mime from 'mime';
import { BOUNDS } from '#domain';
import { encodingOf } from '#platform';

const HEAD_BYTES = BOUNDS.files.typeHead.value;

/** Types of source code by extension, if `mime` has none or the type of a rarer format. */
const SOURCE_TYPES = new Map(
  Object.entries({
    'text/plain': 'key tpl',
    'text/vnd.graphviz': 'dot',
    'text/x-c': 'hpp hxx c++',
    'text/x-clojure': 'clj cljs cljc edn',
    'text/x-cmake': 'cmake',
    'text/x-common-lisp': 'lisp',
    'text/x-csharp': 'cs',
    'text/x-cuda': 'cu',
    'text/x-dart': 'dart',
    'text/x-diff': 'diff patch',
    'text/x-elixir': 'ex exs',
    'text/x-emacs-lisp': 'el',
    'text/x-erlang': 'erl hrl',
    'text/x-fsharp': 'fs fsi fsx',
    'text/x-gettext-translation': 'po pot',
    'text/x-go': 'go',
    'text/x-graphql': 'graphql gql',
    'text/x-groovy': 'groovy gradle',
    'text/x-haskell': 'hs',
    'text/x-hcl': 'hcl tf tfvars',
    'text/x-julia': 'jl',
    'text/x-kotlin': 'kt kts',
    'text/x-makefile': 'mk mak',
    'text/x-msdos-batch': 'bat cmd',
    'text/x-nim': 'nim',
    'text/x-ocaml': 'ml mli',
    'text/x-powershell': 'ps1 psm1',
    'text/x-protobuf': 'proto',
    'text/x-python': 'py pyi pyw',
    'text/x-r': 'r',
    'text/x-ruby': 'rb rake gemspec',
    'text/x-rust': 'rs',
    'text/x-scala': 'scala',
    'text/x-scheme': 'scm',
    'text/x-shellscript': 'bash zsh fish',
    'text/x-solidity': 'sol',
    'text/x-svelte': 'svelte',
    'text/x-swift': 'swift',
    'text/x-typescript': 'ts tsx mts cts',
    'text/x-vb': 'vb',
    'text/x-verilog': 'v sv',
    'text/x-vhdl': 'vhd vhdl',
    'text/x-vue': 'vue',
    'text/x-zig': 'zig',
  }).flatMap(([type, extensions]) => extensions.split(' ').map((extension) => [extension, type] as const)),
);

/** Types whose files are always text. */
const TEXT =
  /^(text\/|application\/(json5?|hjson|xml|xml-dtd|javascript|ecmascript|node|toml|yaml|sql|x-(sh|csh|perl|httpd-php|tcl|ndjson))$)|\+(json|xml|yaml)$/;
/** Types whose files may be text: documents, keys, mail, models, playlists and plain image formats. */
const MAYBE_TEXT =
  /^(message\/|model\/|chemical\/|image\/(x-portable-|x-xbitmap|x-xpixmap)|audio\/(x-)?mpegurl|application\/(rtf|postscript|eps|mathematica|mbox|sdp|sieve|yang|express|cwl|trig|n-triples|n-quads|sparql-query|relax-ng-compact-syntax|octet-stream|pgp-|pkcs|pkix-|x-x509-|x-pkcs7-|x-(tex|texinfo|latex|subrip|shar|xfig|font-bdf|chess-pgn|ms-regedit|research-info-systems|ns-proxy-autoconfig|install-instructions)$|vnd\.(apple\.mpegurl|dart)$))/;
/** Types that `file-type` always detects by the bytes: images, and videos named `.ts`. */
const IN_BYTES = new Set([...[...supportedMimeTypes].filter((type) => type.startsWith('image/')), 'video/mp2t']);
/** A PDF may have some bytes before its header. */
const PDF_MARK = '%PDF-';

/**
 * Returns the MIME type by the first bytes, else by the name, else as the sender declared it; null if it is unknown. A name or
 * a declared type counts only if the bytes do not contradict it.
 */
export async function detectMimeType(whole: Uint8Array, name: string, declared?: string): Promise<string | null> {
  // Always the same bytes, so that the type of a file does not depend on the sizes of its chunks.
  const head = Buffer.from(whole.subarray(0, HEAD_BYTES));
  const encoding = encodingOf(head, whole.byteLength > HEAD_BYTES);
  const mayBe = (type: string): boolean => {
    if (encoding === null) return !TEXT.test(type) && !IN_BYTES.has(type);
    return TEXT.test(type) || MAYBE_TEXT.test(type) || (type === 'application/pdf' && head.includes(PDF_MARK));
  };
  const byBytes = (await fileTypeFromBuffer(head))?.mime;
  // Some signatures are two or three bytes, and a text may begin with them too: UTF-16LE begins like some audio.
  const isSurelyText = encoding !== null && !encoding.isGuess;
  if (byBytes !== undefined && (!isSurelyText || mayBe(byBytes))) return byBytes;
  const extension = /\.([^.]+)$/.exec(name)?.[1]?.toLowerCase() ?? '';
  const claimed = [SOURCE_TYPES.get(extension), mime.getType(name), plainMimeType(declared)].flatMap(
    (type) => type ?? [],
  );
  return claimed.find(mayBe) ?? (encoding !== null && claimed.length > 0 ? 'text/plain' : null);
}

/** Returns `type/subtype` without parameters; null if it is invalid or `application/octet-stream`. */
function plainMimeType(declared = ''): string | null {
  const [type = ''] = declared.toLowerCase().split(';');
  const plain = /^\s*([\w!#$&^.+-]+\/[\w!#$&^.+-]+)\s*$/.exec(type)?.[1];
  return plain === undefined || plain === 'application/octet-stream' ? null : plain;
}

/** Returns the first bytes of the source, at least as many as the detection needs, and the whole source from its beginning. */
export async function withHead(
  source: AsyncIterable<Uint8Array>,
): Promise<{ head: Uint8Array; whole: AsyncIterable<Uint8Array> }> {
  const chunks = source[Symbol.asyncIterator]();
  const begun: Uint8Array[] = [];
  let length = 0;
  while (length <= HEAD_BYTES) {
    const next = await chunks.next();
    if (next.done) break;
    begun.push(next.value);
    length += next.value.byteLength;
  }
  async function* whole(): AsyncGenerator<Uint8Array> {
    try {
      yield* begun;
      for (let next = await chunks.next(); !next.done; next = await chunks.next()) yield next.value;
    } finally {
      // Closes the source if the reader stops early.
      await chunks.return?.();
    }
  }
  return { head: Buffer.concat(begun), whole: whole() };
}
