/** A message of a request, as both protocols have it. */
export type Turn = { role: 'user'; texts: string[] } | { role: 'assistant' } | { role: 'tool'; text: string };

/** What a request asks for. */
export interface Asked {
  /** The script's name. */
  script: string;
  /** The line that names it, which tells conversations apart: `script: NAME anything`. */
  line: string;
  /** The rest of the user's text, behind that line. */
  message: string;
  /** From 0: how often the model has answered since. */
  step: number;
  /** What it was told since, in the request's order. */
  toolResults: string[];
}

/**
 * By the last user message; undefined if no text of it starts with `script: NAME`. Right behind results of tools it need
 * not: OpenAI's protocol has their images there.
 */
export function whatIsAsked(turns: readonly Turn[]): Asked | undefined {
  const place = turns.findLastIndex(
    (turn, i) => turn.role === 'user' && (turns[i - 1]?.role !== 'tool' || scriptText(turn) !== undefined),
  );
  const text = scriptText(turns[place]);
  if (text === undefined) return undefined;
  const [line, ...rest] = text.split('\n');
  const since = turns.slice(place + 1);
  return {
    script: line!.split(' ')[1]!,
    line: line!,
    message: rest.join('\n'),
    step: since.filter(({ role }) => role === 'assistant').length,
    toolResults: since.flatMap((turn) => (turn.role === 'tool' ? [turn.text] : [])),
  };
}

/** Returns the last text. Consecutive user messages arrive as one, with several texts or one text with empty lines. */
function scriptText(turn: Turn | undefined): string | undefined {
  if (turn?.role !== 'user') return undefined;
  const texts = turn.texts.flatMap((one) => one.split(/\n\n(?=script: )/));
  return texts.findLast((one) => one.startsWith('script: '));
}

/** Content in either protocol: a string, or parts of which only texts say something here. */
export function textOf(content: string | readonly { type: string; text?: string | undefined }[]): string {
  if (typeof content === 'string') return content;
  return content.map(({ type, text }) => text ?? `[${type}]`).join('\n');
}
