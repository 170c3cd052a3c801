import type { HeavyFile } from './heavy-files.ts';
import type { ScriptInput } from './provider/script.ts';

const MEBIBYTE = 1024 * 1024;
/** An answer of a model may have this many UTF-16 units; a little less, for what is around it. */
const LARGEST_ANSWER = MEBIBYTE - 8_192;
/** Characters of a user's message that creates a Thread. */
const LONGEST_MESSAGE = 31_000;

export type HeavyAgent = 'stdio' | 'http' | 'echo' | 'guide';

/** A Run that gives one tool, or the model's answer, as much as it may have. */
export interface HeavyRun {
  /** The tool as the agent knows it, or what else the row measures. */
  tool: string;
  /** For people: what it is given, or gives. */
  largest: string;
  agent: HeavyAgent;
  /** The steps of the model. */
  steps?: ScriptInput['steps'];
  /** The message of the user. Default: one that starts the script of `steps`. */
  says?: string;
  /** A file of the message. */
  file?: HeavyFile;
  /** A second message of the same Thread. */
  then?: string;
  /** How the Run ends. Default: `completed`. */
  ends?: 'failed';
  /** Whether ten of them at once take more than 45 s. They are measured with SPOOL_LONG=1 only. */
  isSlow?: true;
}

type Call = NonNullable<ScriptInput['steps'][number]['toolCalls']>[number];

const end = { text: ['Done.'] };
const calling = (...calls: Call[]): ScriptInput['steps'] => [{ toolCalls: calls }, end];
const call = (name: string, input: object): Call => ({ name, rawArguments: JSON.stringify(input) });
const fields = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`key ${i}`, i]));

/** Before the rows: a folder of 1,000 files, which the agents' Threads share. */
export const FOLDER_STEPS: ScriptInput['steps'] = [
  { toolCalls: Array.from({ length: 990 }, (_, i) => call('write_file', { path: `folder/${i}.txt`, content: 'x' })) },
  {
    toolCalls: [
      call('write_file', { path: 'lines.txt', content: '\n'.repeat(LARGEST_ANSWER / 2 - 100) }),
      call('edit_file', { path: 'lines.txt', old_text: '\n', new_text: '\n'.repeat(9), replace_all: true }),
    ],
  },
  end,
];

const ofFiles: HeavyRun[] = [
  {
    tool: 'list_files',
    largest: 'a folder of 1,000 files',
    agent: 'stdio',
    steps: calling(call('list_files', {}), call('list_files', { path: 'folder' })),
  },
  {
    tool: 'read_file',
    largest: '100,000 lines after 2,000,000 skipped lines, in 4.5 MiB',
    agent: 'stdio',
    steps: calling(call('read_file', { path: 'lines.txt', offset: 2_000_000, limit: 100_000 })),
  },
  ...(
    [
      ['large.pdf', 'a PDF of 31 MiB'],
      ['large.docx', 'a DOCX of 15 MiB'],
      ['large.png', 'an image of 5 MiB that goes to the model'],
    ] as const
  ).map(([file, largest]) => ({
    ...{ tool: 'read_file', largest, agent: 'stdio' as const, file },
    steps: calling(call('read_file', { path: `attachments/${file}` })),
  })),
  {
    tool: 'write_file',
    largest: '1 MiB of text',
    agent: 'stdio',
    steps: calling(call('write_file', { path: 'new.txt', content: '漢'.repeat(LARGEST_ANSWER - 100) })),
  },
  {
    tool: 'edit_file',
    largest: '2,300,000 replacements in 4.5 MiB',
    agent: 'stdio',
    steps: calling(call('edit_file', { path: 'lines.txt', old_text: '\n\n', new_text: '\n\t', replace_all: true })),
  },
  {
    tool: 'delete_file',
    largest: 'a path of 300,000 characters',
    agent: 'stdio',
    steps: calling(call('delete_file', { path: 'a\u0308/'.repeat(100_000) })),
  },
];

/** What the heavy server answers, by its tool. */
const RESULTS = {
  text: 'a text of 16 MiB',
  letters: 'a text of 16 MiB, 3 bytes per letter',
  lines: 'a text of 8 Mi escaped line breaks',
  mebibyte: 'a text of 1 Mi escaped line breaks',
  texts: '8,000 texts',
  image: 'an image of 12 MiB',
  photos: 'three images that go to the model',
  fields: 'structured content of 24,000 fields',
  blocks: '24,000 invalid blocks',
  newlines: '1 MiB of empty lines before its result',
  words: '32,000 lines or SSE events that are not MCP messages',
  notices: '100,000 unrequested messages',
};

function ofServer(agent: 'stdio' | 'http'): HeavyRun[] {
  const row = (tool: string, largest: string, input: object = {}): HeavyRun => ({
    ...{ tool: `heavy__${tool}`, largest, agent },
    steps: calling(call(`heavy__${tool}`, input)),
  });
  return [
    ...Object.entries(RESULTS).map(([tool, largest]) => row(tool, largest)),
    row('input', 'an input of 24,000 fields', fields(24_000)),
    row('input', 'an input of 1 MiB of text', { text: '漢'.repeat(LARGEST_ANSWER - 100) }),
    row('pattern', 'a schema whose check never ends', { text: `${'a'.repeat(40)}!` }),
  ];
}

const ofAnswers: HeavyRun[] = [
  {
    tool: 'answer',
    largest: '1 MiB of citation marks',
    agent: 'stdio',
    steps: [{ text: Array<string>(64).fill('\uE200'.repeat(LARGEST_ANSWER / 64)) }],
  },
  {
    tool: 'answer',
    largest: '1 MiB in one delta',
    agent: 'stdio',
    steps: [{ text: ['漢'.repeat(LARGEST_ANSWER)] }],
  },
  {
    tool: 'answer',
    largest: '5,000 deltas together',
    agent: 'stdio',
    steps: [{ text: Array<string>(5_000).fill('word ') }],
  },
  {
    tool: 'answer',
    largest: '512 KiB of thoughts and as much text',
    agent: 'stdio',
    steps: [{ thinking: { pieces: ['ä'.repeat(LARGEST_ANSWER / 2)] }, text: ['ä'.repeat(LARGEST_ANSWER / 2)] }],
  },
  {
    tool: 'answer',
    largest: 'a call with 100,000 keys',
    agent: 'stdio',
    steps: calling({ name: 'list_files', rawArguments: JSON.stringify(Object.fromEntries(shortKeys(100_000))) }),
  },
  {
    tool: 'answer',
    largest: '1,000 calls of tools that do not exist',
    agent: 'stdio',
    steps: calling(...Array.from({ length: 1_000 }, () => call('missing', {}))),
  },
  {
    tool: 'answer',
    largest: '1,001 calls',
    agent: 'stdio',
    steps: calling(...Array.from({ length: 1_001 }, () => call('missing', {}))),
    ends: 'failed',
  },
];

function shortKeys(count: number): [string, number][] {
  return Array.from({ length: count }, (_, i) => [i.toString(36), 0]);
}

/** So many events that what is read whole is full, and a second message, for which all of it is read again. */
const ofTranscripts: HeavyRun[] = [
  {
    tool: 'transcript',
    largest: '8 MiB of results',
    agent: 'http',
    steps: calling(...Array.from({ length: 8 }, () => call('heavy__mebibyte', {}))),
    then: 'x',
  },
  {
    tool: 'transcript',
    largest: '8 MiB of inputs with 24,000 fields each',
    agent: 'http',
    isSlow: true,
    steps: [
      ...Array.from({ length: 8 }, () => ({
        toolCalls: [call('heavy__input', fields(24_000)), call('heavy__input', fields(24_000))],
      })),
      end,
    ],
    then: 'x',
  },
];

const ofScripts: HeavyRun[] = (
  [
    ['echo', 'clock', '/tool'],
    ['echo', 'send_note', '/confirm 20'],
    ['echo', 'write_file', '/artifact'],
    ['echo', 'answer', '/pieces 10000 /cite /think 1ms'],
    ['guide', 'look_up', 'threads'],
    ['guide', 'write_page', 'show me'],
    ['guide', 'answer', 'everything'],
  ] as const
).map(([agent, tool, words]) => ({
  ...{ agent, tool, largest: `${words} and 31,000 characters` },
  // A command of echo ends where the message begins.
  says: `${words} ${'a '.repeat((LONGEST_MESSAGE - 100) / 2)}`,
}));

export const HEAVY_RUNS: readonly HeavyRun[] = [
  ...ofFiles,
  ...ofServer('stdio'),
  ...ofServer('http'),
  ...ofAnswers,
  ...ofTranscripts,
  ...ofScripts,
];
