import type { ScriptInput } from './provider/script.ts';
import type { ToolName } from './fake-provider-calls.ts';

export const REPORT = '# Sales\n\nNorth leads — 1,200 of 2,000. ✓\n';

type Step = ScriptInput['steps'][number];

/** Before each piece of a last step, milliseconds. */
const PAUSE_MS = 40;
const ASKING = { inputTokens: 100, cachedInputTokens: 40, outputTokens: 30, reasoningTokens: 10 };
const ENDING = { inputTokens: 150, outputTokens: 40, reasoningTokens: 10 };

/** Before a call: some providers want it back with the result, as it was signed. */
export const THOUGHT = ['I had ', 'better ', 'look.'];

const asks = (...toolCalls: Step['toolCalls'] & object): Step => ({
  thinking: { pieces: THOUGHT },
  text: ['I will ', 'look ', 'at it.'],
  toolCalls,
  usage: ASKING,
});
const ends: Step = {
  thinking: { pieces: ['Now ', 'I know.'] },
  text: ['This ', 'is ', 'all ', 'that ', 'I ', 'have ', 'found ', 'out.'],
  usage: ENDING,
  pauseMs: PAUSE_MS,
};
/** Of a call to the tools of the test, which tell the conversations apart by it. */
const input = (n: number) => ({ n, name: '{{firstLine}}' });
const using = (name: ToolName) => ({ steps: [asks({ name: `tools__${name}`, input: input(1) }), ends] });

/** What the models of fault tests say: they think before each answer, and their tools are those of `startStandardModels`. */
export const MODEL_SCRIPTS = {
  say: { steps: [ends] },
  act: using('act'),
  lookup: using('lookup'),
  note: using('note'),
  both: {
    steps: [asks({ name: 'tools__lookup', input: input(1) }, { name: 'tools__lookup', input: input(2) }), ends],
  },
  write: { steps: [asks({ name: 'write_file', input: { path: 'report.md', content: REPORT } }), ends] },
  echo: { steps: [asks({ name: 'everything__echo', input: { message: '{{firstLine}}' } }), ends] },
  /** Until its server is gone. */
  hang: { steps: [asks({ name: 'odd__hang', input: {} }), ends] },
} satisfies Record<string, ScriptInput>;

export type ModelScript = keyof typeof MODEL_SCRIPTS;

/** `name` tells conversations apart: for the provider in the first line, for tools in the second. */
export const modelText = (script: ModelScript, name: string): string => `script: ${script} ${name}\n${name}`;

const stepsOf = (text: string): Step[] => MODEL_SCRIPTS[text.split(' ')[1] as ModelScript].steps;

/** What a model says to the message in all, a text for each step. */
export const textsOf = (text: string): string[] => stepsOf(text).map((step) => step.text!.join(''));

/** What it costs in all, as the public log tells it. */
export const usageOf = (text: string): { inputTokens: number; outputTokens: number }[] =>
  stepsOf(text).map(({ usage }) => ({ inputTokens: usage!.inputTokens!, outputTokens: usage!.outputTokens! }));
