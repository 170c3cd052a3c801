import { HarnessError, type Tool } from '../harness.ts';
import { answerLimit, answerTokens, takesImages, windowTokens, type ModelChoice } from '../model/model-settings.ts';
import { askWith, CALLED, MADE_UP, RED_FILE, resultsOf, user, type Asked, type AskedModel } from './ask-model.ts';
import type { OddityKind } from '../model/oddities.ts';
import { fails, reasonOf, unknown, works, type CheckRow } from './check-row.ts';
import type { SeenInAnswers } from './watch-answers.ts';

export interface CheckedModel extends AskedModel {
  /** The agent's tools. They are sent together with the tool of the check. */
  tools: readonly Tool[];
  seen: SeenInAnswers;
  /** The differences between the provider and its protocol so far. */
  oddities: ReadonlyMap<string, Oddity>;
}

export interface Oddity {
  kind: OddityKind;
  place: string;
}

const COUNT = [user('Write the numbers from one to twenty as words, separated by spaces.')];

/** Asks a fallback model for a text. The Agent runs without it. */
export async function checkFallback(asked: AskedModel): Promise<CheckRow> {
  const row = textRow(await askWith(asked)(COUNT));
  return { ...row, check: `fallback model ${asked.model.name}`, needed: false };
}

/** Asks the provider up to four times, each time as a step of a Run does. Returns one row per ability. */
export async function checkModel(checked: CheckedModel): Promise<CheckRow[]> {
  const { model, seen } = checked;
  const ask = askWith(checked);
  const first = await ask(COUNT);
  const text = textRow(first);
  const limits = limitsRow(model, seen);
  if (text.state === 'does not work')
    return [text, ...OTHERS.map((check) => unknown(check, 'Not checked, because the model returned no text.')), limits];
  const question = user(
    `Call the tool ${CALLED} twice, both calls in one answer: once with the word "red", once with "blue".`,
  );
  const second = await ask([question], [...checked.tools, MADE_UP]);
  const third = await resultsOf(second, (results) => ask([question, ...results], [...checked.tools, MADE_UP]));
  const fourth = takesImages(model)
    ? await ask([user('Which colour does the image have? Answer with one word.', [RED_FILE.fileId])], [], [RED_FILE])
    : null;
  const asked = [first, second, third, fourth].filter((one) => one !== null);
  return [
    text,
    streamingRow(first),
    ...toolRows(second, checked.tools.length > 0),
    third === null
      ? unknown('tool results', 'Not checked, because the model called no tool.')
      : resultsRow(third, checked.tools.length > 0),
    imagesRow(fourth),
    usageRow(seen, first),
    reasoningRow(model, asked),
    protocolRow([...checked.oddities.values()]),
    limits,
  ];
}

const OTHERS = ['streaming', 'tools', 'parallel tools', 'tool results', 'images', 'usage', 'reasoning', 'protocol'];

function textRow(asked: Asked): CheckRow {
  if (asked instanceof HarnessError)
    return asked.code === 'output_too_large'
      ? unknown('text', `The model used up the tokens of this check before it wrote any text. ${reasonOf(asked)}`)
      : fails('text', reasonOf(asked), true);
  return asked.message.text.trim() === ''
    ? fails('text', 'The answer has no text.', true)
    : works('text', 'The model returns text.');
}

function streamingRow(asked: Asked): CheckRow {
  if (asked instanceof HarnessError) return unknown('streaming', 'Not checked, because the model returned no text.');
  return asked.pieces > 1
    ? works('streaming', `The text arrived in ${asked.pieces} deltas.`)
    : fails('streaming', 'The text arrived in one delta, so people see nothing until it is complete.');
}

/** Returns the row of a failed call: `not known` for a limit, which says nothing about the ability. `needed`: see CheckRow. */
const refused = (check: string, error: HarnessError, needed: boolean): CheckRow =>
  error.code === 'provider_rate_limited' || error.code === 'output_too_large'
    ? unknown(check, reasonOf(error))
    : fails(check, reasonOf(error), needed);

function toolRows(asked: Asked, hasTools: boolean): CheckRow[] {
  if (asked instanceof HarnessError) {
    const parallel = unknown('parallel tools', 'Not checked, because the call of the model failed.');
    return [refused('tools', asked, hasTools), parallel];
  }
  const calls = asked.message.toolCalls.filter(({ toolName }) => toolName === CALLED);
  const [call] = calls;
  if (call === undefined)
    return [
      fails('tools', 'The model did not call the tool that it was asked to call.'),
      unknown('parallel tools', 'Not checked, because the model called no tool.'),
    ];
  const wrong = calls.find(({ toolInput }) => typeof toolInput['word'] !== 'string');
  const tools =
    wrong === undefined
      ? works('tools', 'The model calls a tool with arguments that match its schema.')
      : fails('tools', 'The model calls a tool, but the arguments do not match its schema.');
  return [
    tools,
    calls.length > 1
      ? works('parallel tools', `One answer has ${calls.length} tool calls.`)
      : fails('parallel tools', 'The answer has only one tool call, so several calls take several steps of a Run.'),
  ];
}

function resultsRow(asked: Asked, hasTools: boolean): CheckRow {
  if (asked instanceof HarnessError) return refused('tool results', asked, hasTools);
  return works('tool results', 'The provider accepts the results, and the model continues.');
}

function imagesRow(asked: Asked | null): CheckRow {
  if (asked === null) return unknown('images', 'Not checked, because model.images is false.');
  if (asked instanceof HarnessError) return refused('images', asked, false);
  return /\bred\b/i.test(asked.message.text)
    ? works('images', 'The model names the colour of an image.')
    : fails('images', 'The provider accepts an image, but the model does not name its colour.');
}

function usageRow({ input, output }: SeenInAnswers, first: Asked): CheckRow {
  if (!input || !output) {
    const missing = input || output ? ` of ${input ? 'output' : 'input'}` : '';
    return fails('usage', `The server does not report tokens${missing}; Spool estimates them.`);
  }
  const usage = first instanceof HarnessError ? null : first.usage;
  const told =
    usage === null ? '' : ` The first call used ${usage.inputTokens} input and ${usage.outputTokens} output tokens.`;
  return works('usage', `The server reports tokens.${told}`);
}

function reasoningRow({ settings }: ModelChoice, asked: readonly Asked[]): CheckRow {
  const came = asked.some((one) => !(one instanceof HarnessError) && one.hasThoughts);
  if (came) return works('reasoning', 'The model sends its reasoning.');
  return settings?.thinkingTokens === undefined
    ? unknown('reasoning', 'The model sent no reasoning. Many models have none or do not send it.')
    : fails('reasoning', 'The model sent no reasoning, although thinkingTokens is set.');
}

/** What the row says of each kind. */
const KINDS: Record<Exclude<OddityKind, 'refused'>, string> = {
  frame: 'an unreadable event',
  part: 'an unknown part',
  field: 'a missing or unusual field',
  number: 'an impossible number',
  end: 'a missing end',
};

function protocolRow(oddities: readonly Oddity[]): CheckRow {
  const refused = oddities.filter(({ kind }) => kind === 'refused').map(({ place }) => place);
  const sent = oddities.flatMap(({ kind, place }) => (kind === 'refused' ? [] : [`${KINDS[kind]} (${place})`]));
  const sentences = [
    sent.length === 0
      ? 'The answers follow their protocol.'
      : `The answers are readable, although they differ from their protocol: ${sent.join(', ')}.`,
    refused.length === 0
      ? ''
      : `The server refused a part of the request, and accepted a changed request. To avoid the refusal, set ${refused.join(', ')}.`,
  ];
  return works('protocol', sentences.filter((sentence) => sentence !== '').join(' '));
}

/** The window of a server at `baseUrl` is known only if the manifest has `contextTokens`. */
function limitsRow(model: ModelChoice, { limits }: SeenInAnswers): CheckRow {
  const isKnown = model.contextTokens !== undefined || model.baseUrl === undefined;
  const most = answerLimit(model);
  const headers = [...limits].map(([name, value]) => `${name}: ${value}`).join(', ');
  const sentences = [
    `The context window is ${windowTokens(model)} tokens${isKnown ? '.' : ' by default; set contextTokens to the size that the server has.'}`,
    most === Infinity
      ? `The manifest does not limit answers, so the provider does. ${answerTokens(model)} tokens of the context window are kept free for the answer.`
      : `An answer has at most ${most} tokens.`,
    headers === '' ? 'The server reports no rate limits.' : `The server reports ${headers}.`,
  ];
  return (isKnown ? works : unknown)('limits', sentences.join(' '));
}
