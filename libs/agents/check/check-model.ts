import { HarnessError, type Tool } from '../harness.ts';
import { answerLimit, answerTokens, takesImages, windowTokens, type ModelChoice } from '../model/model-settings.ts';
import { askWith, CALLED, MADE_UP, RED_FILE, resultsOf, user, type Asked, type AskedModel } from './ask-model.ts';
import type { OddityKind } from '../model/oddities.ts';
import { fails, reasonOf, unknown, works, type CheckRow } from './check-row.ts';
import type { SeenInAnswers } from './watch-answers.ts';

export interface CheckedModel extends AskedModel {
  /** What a Run of the agent would send besides. */
  tools: readonly Tool[];
  seen: SeenInAnswers;
  /** What the provider has done against its protocol so far. */
  oddities: ReadonlyMap<string, Oddity>;
}

export interface Oddity {
  kind: OddityKind;
  place: string;
}

/** Asks the provider three or four times, each as a step of a Run does. */
export async function checkModel(checked: CheckedModel): Promise<CheckRow[]> {
  const { model, seen } = checked;
  const ask = askWith(checked);
  const first = await ask([user('Write the numbers from one to twenty as words, separated by spaces.')]);
  const text = textRow(first);
  const limits = limitsRow(model, seen);
  if (text.state === 'does not work')
    return [text, ...OTHERS.map((check) => unknown(check, 'Not asked, because there is no text.')), limits];
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
      ? unknown('tool results', 'There was no call whose result could go back.')
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
      ? unknown('text', `The model used up the tokens of this check before it wrote. ${reasonOf(asked)}`)
      : fails('text', reasonOf(asked), true);
  return asked.message.text.trim() === ''
    ? fails('text', 'The answer has no text.', true)
    : works('text', 'The model answers.');
}

function streamingRow(asked: Asked): CheckRow {
  if (asked instanceof HarnessError) return unknown('streaming', 'There was no text to see it by.');
  return asked.pieces > 1
    ? works('streaming', `The text came in ${asked.pieces} pieces.`)
    : fails('streaming', 'The text came in one piece: people see it when it is whole.');
}

/** A limit passes, and says nothing of what it kept from being tried. `needed`: whether Runs need it. */
const refused = (check: string, error: HarnessError, needed: boolean): CheckRow =>
  error.code === 'provider_rate_limited' || error.code === 'output_too_large'
    ? unknown(check, reasonOf(error))
    : fails(check, reasonOf(error), needed);

function toolRows(asked: Asked, hasTools: boolean): CheckRow[] {
  if (asked instanceof HarnessError) {
    const parallel = unknown('parallel tools', 'There was no answer with calls.');
    return [refused('tools', asked, hasTools), parallel];
  }
  const calls = asked.message.toolCalls.filter(({ toolName }) => toolName === CALLED);
  const [call] = calls;
  if (call === undefined)
    return [
      fails('tools', 'The model did not call the tool that it was told to call.'),
      unknown('parallel tools', 'There was no call.'),
    ];
  const wrong = calls.find(({ toolInput }) => typeof toolInput['word'] !== 'string');
  const tools =
    wrong === undefined
      ? works('tools', 'The model calls a tool, with arguments that fit.')
      : fails('tools', 'The model calls a tool, but its arguments do not fit the schema.');
  return [
    tools,
    calls.length > 1
      ? works('parallel tools', `One answer has ${calls.length} calls.`)
      : fails('parallel tools', 'An answer has one call; a Run with several takes more steps.'),
  ];
}

function resultsRow(asked: Asked, hasTools: boolean): CheckRow {
  if (asked instanceof HarnessError) return refused('tool results', asked, hasTools);
  return works('tool results', 'The results went back and the model went on.');
}

function imagesRow(asked: Asked | null): CheckRow {
  if (asked === null) return unknown('images', 'Not asked: model.images says that the model takes none.');
  if (asked instanceof HarnessError) return refused('images', asked, false);
  return /\bred\b/i.test(asked.message.text)
    ? works('images', 'The model names the colour of an image.')
    : fails('images', 'The provider took an image, but the model does not name its colour.');
}

function usageRow({ input, output }: SeenInAnswers, first: Asked): CheckRow {
  if (!input || !output) {
    const missing = input || output ? ` of ${input ? 'output' : 'input'}` : '';
    return fails('usage', `The server does not report the tokens${missing}; they are estimated.`);
  }
  const usage = first instanceof HarnessError ? null : first.usage;
  const told = usage === null ? '' : ` The first call took ${usage.inputTokens}, and ${usage.outputTokens} of output.`;
  return works('usage', `The server reports its tokens.${told}`);
}

function reasoningRow({ settings }: ModelChoice, asked: readonly Asked[]): CheckRow {
  const came = asked.some((one) => !(one instanceof HarnessError) && one.hasThoughts);
  if (came) return works('reasoning', 'The model thinks aloud.');
  return settings?.thinkingTokens === undefined
    ? unknown('reasoning', 'No thoughts came; many models have none, or keep them.')
    : fails('reasoning', 'No thoughts came, although thinkingTokens is set.');
}

function protocolRow(oddities: readonly Oddity[]): CheckRow {
  const refused = oddities.filter(({ kind }) => kind === 'refused').map(({ place }) => place);
  const sent = oddities.filter(({ kind }) => kind !== 'refused').map(({ kind, place }) => `${kind} at ${place}`);
  const sentences = [
    sent.length === 0
      ? 'The answers follow their protocol.'
      : `The answers can be read. Not in their protocol: ${sent.join(', ')}.`,
    refused.length === 0
      ? ''
      : `The server refused a part of the request, and took it without. To save the refused request, set ${refused.join(', ')}.`,
  ];
  return works('protocol', sentences.filter((sentence) => sentence !== '').join(' '));
}

/** The window of a server that the manifest names is known only if the manifest tells it too. */
function limitsRow(model: ModelChoice, { limits }: SeenInAnswers): CheckRow {
  const isKnown = model.contextTokens !== undefined || model.baseUrl === undefined;
  const most = answerLimit(model);
  const headers = [...limits].map(([name, value]) => `${name}: ${value}`).join(', ');
  const sentences = [
    `The window counts as ${windowTokens(model)} tokens${isKnown ? '.' : ' by default; set contextTokens to what the server has.'}`,
    most === Infinity
      ? `The provider limits an answer; ${answerTokens(model)} tokens are kept free for it.`
      : `An answer may have ${most} tokens.`,
    headers === '' ? 'The server tells no rate limits.' : `The server tells ${headers}.`,
  ];
  return (isKnown ? works : unknown)('limits', sentences.join(' '));
}
