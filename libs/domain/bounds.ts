/** The outcome of an input beyond a bound. */
export type Beyond =
  /** It is refused before the computation, with an error. */
  | 'refused'
  /** The computation gets only a part of it. Texts for models and people say so. */
  | 'cut'
  /** The computation is left out, and the rest works without its result. */
  | 'skipped'
  /** The computation runs in the task pool. */
  | 'pool'
  /** The computation is divided into slices, or gets its own turn of the event loop. */
  | 'slices';

export type BoundUnit =
  | 'bytes'
  /** Milliseconds. */
  | 'ms'
  /** Milliseconds of CPU time. */
  | 'CPU ms'
  /** UTF-16 units. */
  | 'units'
  /** Unicode characters. */
  | 'characters'
  | 'levels'
  /** The values of a JSON text, or their weight (`libs/agents/json-weight.ts`). */
  | 'values'
  /** A number of the things that `what` names. */
  | 'entries';

/** A bound of a computation whose cost grows with the input of a tenant. */
export interface Bound {
  readonly value: number;
  readonly unit: BoundUnit;
  /** The bounded computation, or the things that are counted. */
  readonly what: string;
  readonly beyond: Beyond;
}

const KIB = 1024;
const MIB = 1024 * KIB;

const bound =
  (unit: BoundUnit) =>
  (value: number, what: string, beyond: Beyond): Bound => ({ value, unit, what, beyond });
const bytes = bound('bytes');
const ms = bound('ms');
const cpuMs = bound('CPU ms');
const units = bound('units');
const characters = bound('characters');
const levels = bound('levels');
const values = bound('values');
const entries = bound('entries');

/**
 * The bounds of computations whose cost grows with the input of a tenant, by the kind of input. The code has no second
 * definition of these numbers. docs/reliability.md shows them; run `npm run settings` after a change. Limits of the fields of
 * requests are in `LIMITS` of libs/contract, and limits that operators choose are settings.
 */
export const BOUNDS = {
  requests: {
    /** Exceeds what any operation accepts: a batch of 100 messages with 100 files each has 30,500 values at depth 6. */
    depth: levels(32, 'parsing a JSON body', 'refused'),
    values: values(50_000, 'parsing a JSON body', 'refused'),
    /** Objects with more take ten times as long to read. Equals `manifests.entries`; the schemas name a tenth of it. */
    fields: entries(2_000, 'fields of one object of a JSON body', 'refused'),
    parsedHere: bytes(256 * KIB, 'parsing and checking a JSON body in the process', 'pool'),
    parsedTogether: bytes(16 * KIB, 'parsing JSON bodies in one turn', 'slices'),
    /** Parsing a smaller body is faster than checking it. */
    unchecked: bytes(16 * KIB, 'receiving a JSON body without checking its shape', 'slices'),
    /** Parsing a body of 8 MiB takes up to 0.2 s and 100 MiB. */
    parseCpu: cpuMs(5_000, 'parsing a JSON body in the task pool', 'refused'),
    parseTime: ms(15_000, 'parsing a JSON body in the task pool', 'refused'),
    issues: entries(5, 'problems that an error lists', 'cut'),
    /** Zod names all of them: 640,000 fields, in a body of 8 MiB, took more than a second. */
    unknownFields: entries(5, 'unknown fields that a problem names', 'cut'),
    issueText: units(500, 'the text of an error', 'cut'),
    /** Longer than any path can be. A long id is then refused like any other malformed id, after the token check. */
    pathParameter: units(64 * KIB, 'matching a parameter of a path', 'refused'),
    /** The claims of the longest token that Spool makes take about half of it. */
    signedToken: units(8_192, 'parsing a signed token', 'refused'),
  },
  manifests: {
    /** The largest manifest that anybody writes has 100,000 characters of instructions. */
    file: bytes(MIB, 'reading a file of manifests', 'refused'),
    /** Words, spaces and marks. */
    tokens: entries(100_000, 'tokens of a YAML file', 'refused'),
    /** Twice the longest list of a manifest. The composer compares all keys of a map with each other. */
    entries: entries(2_000, 'entries of one map or list of a YAML file', 'refused'),
    /** The composer and the checks are recursive. An overflow of the stack may end the process. */
    depth: levels(100, 'composing YAML, and checking a manifest', 'refused'),
    aliases: entries(100, 'aliases that YAML expands', 'refused'),
    /** A million characters of text and 3,000 values, or 20,000 values. */
    weight: values(20_000, 'checking a manifest', 'refused'),
    problems: entries(20, 'problems that are listed', 'cut'),
    /** Locating a problem reads the maps around it. */
    located: entries(100, 'problems that are located in a YAML document', 'cut'),
    /** With more, the shortest diff takes too long for one step. All of both manifests is shown instead. */
    edits: entries(400, 'changed lines of a diff of two manifests', 'skipped'),
  },
  messages: {
    depth: levels(128, 'parsing a message, or the input of a tool call', 'refused'),
    /** Maps, lists, their entries and their keys: the cost of parsing and checking besides the bytes. */
    parts: values(50_000, 'parsing a message, or the input of a tool call', 'refused'),
    /** Bytes, or UTF-16 units of decoded text. */
    parsedTogether: bytes(256 * KIB, 'parsing messages in one turn', 'slices'),
    /** The reader handles the events of one piece in one turn. */
    events: entries(25, 'server-sent events that are parsed in one turn', 'slices'),
  },
  toolServers: {
    message: bytes(16 * MIB, 'receiving a message', 'refused'),
    /** Even small messages cost time. */
    messages: entries(10_000, 'messages between two requests', 'refused'),
    /** A server may send messages without a request. */
    unasked: entries(2, 'largest answers that are received for one request', 'refused'),
    /** Many programs print a greeting when they start. */
    unreadable: entries(100, 'lines that are not messages, between two requests', 'refused'),
    /** The SDK writes a tidied message again, which takes long. It gets a longer message unchanged if it accepts it. */
    tidied: units(256 * KIB, 'rewriting a tidied message', 'skipped'),
    logLine: bytes(8 * KIB, 'reading a line of standard error', 'cut'),
    logLines: entries(1_000, 'lines of standard error that are read', 'cut'),
    /** Models get the tools, and the connection keeps them in memory. */
    list: bytes(2 * MIB, 'reading a list of tools', 'cut'),
    tools: entries(1_000, 'tools of a list that are read', 'cut'),
    pages: entries(100, 'pages of a list of tools that are read', 'cut'),
    /** Patterns of the manifest are compared with each name. */
    name: units(255, 'the name of a tool', 'cut'),
    title: units(255, 'the title of a tool', 'cut'),
    description: bytes(8 * KIB, 'the description of a tool', 'cut'),
    schema: bytes(64 * KIB, 'the input schema of a tool', 'cut'),
  },
  toolCalls: {
    /** A check up to these weights takes at most 20 ms, unless the schema has one of the heavy keywords. */
    lightSchema: values(300, 'checking an input in the process: its schema', 'pool'),
    lightInput: values(3_000, 'checking an input in the process: the input', 'pool'),
    /** Heavier ones are not even sent to the task pool, because serializing them takes too long. */
    checked: values(100_000, 'checking an input in the task pool: schema or input', 'skipped'),
    /** Far more than an honest schema takes. The wall time is long because a child of the pool has a low priority. */
    checkCpu: cpuMs(1_000, 'checking an input in the task pool', 'skipped'),
    checkTime: ms(30_000, 'checking an input in the task pool', 'skipped'),
    /** Each part is checked and read. */
    parts: entries(1_000, 'parts of a result that are read', 'cut'),
    /** Each file is an upload and a row. */
    files: entries(100, 'files of a result that are stored', 'cut'),
    data: units(256 * KIB, 'decoding the data of files in one turn', 'slices'),
    uri: units(8 * KIB, 'reading the URI of a resource', 'cut'),
    mimeType: units(255, 'reading a MIME type', 'cut'),
    searched: units(2 * MIB, 'searching a text for secrets', 'cut'),
    searchedTogether: units(1_024, 'searching texts for secrets in one turn', 'slices'),
    searchedError: units(64 * KIB, 'searching the text of an error for secrets', 'cut'),
    /** The model can ask for less. */
    result: bytes(MIB, 'storing a result', 'cut'),
    summarized: units(32 * KIB, 'summarizing a result', 'cut'),
    /** docs/spec/decisions.md#log */
    summary: bytes(2 * KIB, 'the summary of a result', 'cut'),
  },
  files: {
    /** Each access to the folder of a Thread reads all of them. */
    artifacts: entries(10_000, 'files of a Thread below `artifacts/`', 'refused'),
    listed: entries(1_000, 'files that `list_files` lists', 'cut'),
    /** Before and after the edit. The size of the result is computed first. */
    edited: bytes(5 * MIB, 'editing a file', 'refused'),
    /** These edits take at most 20 ms. */
    editedHere: bytes(256 * KIB, 'editing a file in the process', 'pool'),
    /** Bytes of the file × UTF-16 units of the text. */
    comparedHere: entries(16 * MIB, 'comparisons of bytes by an edit in the process', 'pool'),
    editCpu: cpuMs(3_000, 'editing a file in the task pool', 'refused'),
    editTime: ms(15_000, 'editing a file in the task pool', 'refused'),
    read: bytes(256 * KIB, 'text that one call of `read_file` returns', 'cut'),
    /** A longer line counts as several, so that a reader can reach every part by line numbers. */
    line: units(64 * KIB, 'reading one line of a file', 'cut'),
    decoded: bytes(64 * KIB, 'decoding the text of a document in one turn', 'slices'),
    head: bytes(8 * KIB, 'detecting type and encoding of a file that is read', 'cut'),
    typeHead: bytes(4_100, 'detecting the type of a file that is stored', 'cut'),
    inline: units(256 * KIB, 'decoding a file within a request in one turn', 'slices'),
    document: bytes(32 * MIB, 'reading a PDF or DOCX document, always in the task pool', 'refused'),
    extractCpu: cpuMs(10_000, 'extracting the text of a document', 'refused'),
    extractTime: ms(30_000, 'extracting the text of a document', 'refused'),
    extracted: units(4 * MIB, 'extracting the text of a document', 'cut'),
    /** The other parts of a DOCX are not read. */
    unpacked: bytes(64 * MIB, 'unpacking the text of a DOCX', 'refused'),
    /** Tags of real documents have some hundreds. */
    tag: units(64 * KIB, 'reading one XML tag of a DOCX', 'refused'),
    /** Anthropic counts them in base64, so its bound is a quarter smaller. */
    image: bytes(5 * MIB, 'showing an image to a model', 'cut'),
    /** Anthropic accepts 32 MB in all, and a worker holds the images in memory. */
    images: bytes(20 * MIB, 'showing images to a model', 'cut'),
    imageCount: entries(20, 'images that a model is shown', 'cut'),
  },
  answers: {
    /** A whole answer in one event with each character escaped, twice over. */
    event: bytes(8 * MIB, 'receiving one event', 'refused'),
    /** A server can send an error that never ends. */
    error: bytes(64 * KIB, 'reading an error', 'cut'),
    errorText: units(64 * KIB, 'searching the message of an error for its cause', 'cut'),
    /** Includes reasoning and the inputs of tool calls. Also the largest continuation. */
    length: units(MIB, 'reading and storing an answer', 'refused'),
    /** The inputs of the largest answer take half of it. */
    held: units(2 * MIB, 'parts of an answer that a provider’s package holds', 'refused'),
    leftOut: units(4 * MIB, 'parts of an answer that are left out, or that arrive as one JSON text', 'refused'),
    /** Half of the limit of a continuation. */
    reasoning: units(512 * KIB, 'storing a server’s reasoning for later steps', 'skipped'),
    invalidInput: bytes(4 * KIB, 'an input that is not a JSON object', 'cut'),
    /** A longer number with an exponent counts as a fraction. */
    number: units(400, 'checking whether a number can be stored exactly', 'skipped'),
    /** Each call is decided, stored and completed separately. */
    calls: entries(1_000, 'tool calls of an answer', 'refused'),
    toolName: units(255, 'the name of a called tool', 'cut'),
    /** The content of its envelope. The bound limits how much text a filter holds back (docs/spec/decisions.md#citation-markup). */
    citation: units(4_096, 'removing a citation', 'skipped'),
    /** Also the size at which gathered text is stored. */
    delta: bytes(2 * KIB, 'storing text as one delta', 'slices'),
    echoDeltas: entries(10_000, 'numbers that a message adds to an answer of the `echo` harness', 'cut'),
    echoConfirmations: entries(20, 'confirmations that the `echo` harness asks for', 'cut'),
  },
  transcripts: {
    /** Far more than fits a model's window, and little for a worker with full slots. */
    whole: bytes(8 * MIB, 'the newest texts of a transcript in memory', 'cut'),
    /** The cost of a step does not depend on earlier steps. */
    growth: units(2 * MIB, 'texts that a Run adds before older texts are cut', 'cut'),
    /** A Run with the most steps and one call in each fits. */
    events: entries(50_000, 'stored events of a transcript', 'cut'),
    oldText: units(2_000, 'each older text of a transcript', 'cut'),
    event: units(256 * KIB, 'parsing stored events in one turn', 'slices'),
    folded: entries(2_000, 'stored events that a check or rebuild reads in one turn', 'slices'),
    /** References to references could multiply without end. */
    schemaParts: entries(5_000, 'parts of a schema that is converted for a provider', 'cut'),
    /** References can make a schema much larger than it is. Reading this much takes at most 100 ms. */
    schemaWeight: values(60_000, 'following references and choices in the schemas of all tools', 'cut'),
    schemaLevels: levels(100, 'converting a schema for a provider', 'cut'),
    part: units(16 * KIB, 'writing texts and files of a prompt in one turn', 'slices'),
    input: values(256, 'writing inputs of a prompt in one turn', 'slices'),
    /** A single item may be larger. */
    page: bytes(MIB, 'a page of log entries, or of final outputs', 'cut'),
    requests: entries(2_000, 'confirmation requests and decisions of one response', 'cut'),
  },
  texts: {
    /** The largest message would take over a second. */
    beginning: units(32 * KIB, 'making a title or a preview of a message', 'cut'),
    title: characters(80, 'the title that a message gives its Thread', 'cut'),
    preview: characters(200, 'the preview of a message', 'cut'),
    /** Checked before normalization, which takes minutes for long texts. */
    path: characters(512, 'normalizing the path of a file', 'refused'),
    pathParts: entries(20, 'parts of the path of a file', 'refused'),
    /** A caller cannot grow the state row without bound (docs/adr/0004). */
    queuedRuns: entries(100, 'Runs of a Thread behind its current one', 'refused'),
  },
} satisfies Record<string, Record<string, Bound>>;
