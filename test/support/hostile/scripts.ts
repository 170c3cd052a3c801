import type { ScriptInput } from '../provider/script.ts';

type ToolCalls = NonNullable<ScriptInput['steps'][number]['toolCalls']>;

/** One tool call a step, then the end. */
const calling = (...calls: ToolCalls): ScriptInput => ({
  steps: [...calls.map((one) => ({ toolCalls: [one] })), { text: ['That is all.'] }],
});

const PATH = 'notes.txt';
const edit = (by: number) => ({
  name: 'edit_file',
  input: { path: PATH, old_text: 'a', new_text: 'a'.repeat(by), replace_all: true },
});

/** What the hostile tenant's models ask for. A message `script: NAME` chooses one. */
export const HOSTILE_SCRIPTS = {
  /** Grows a file to 5 MiB of one letter, then asks for a result of 1.5 GB. */
  growing: calling(
    { name: 'write_file', input: { path: PATH, content: 'a'.repeat(5 * 1024) } },
    ...[edit(32), edit(32), edit(300)],
  ),
  /** Two marks in the wrong order, again and again: normalising sorts them in quadratic time. */
  longPath: calling({ name: 'read_file', input: { path: `a${'\u0308\u0323'.repeat(150_000)}` } }),
  deepInput: calling({ name: 'read_file', rawArguments: `{"path":${'['.repeat(3_000)}${']'.repeat(3_000)}}` }),
  document: calling({ name: 'read_file', input: { path: 'attachments/bomb.docx' } }),
  slowSchema: calling({ name: 'endless__slow', input: { text: `${'a'.repeat(40)}!` } }),
  /** A Run of 15 s. */
  long: { steps: [{ text: Array<string>(15).fill('and on '), pauseMs: 1_000 }] },
  nosy: calling({ name: 'snoop__snoop', input: {} }),
} satisfies Record<string, ScriptInput>;
