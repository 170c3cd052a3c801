import { isFields, parsed, type EventsOfProtocol, type Fields, type Reader } from './json-fields.ts';

/** The only choice that is requested. */
const CHOICE = 'choices[0]';

/** Reduces chunks of OpenAI's Chat Completions to the fields that are used. Reports and leaves out what it cannot read. */
export class ChatChunks implements EventsOfProtocol {
  isEnding = false;
  isOver = false;
  isReadable = false;
  private hasText = false;
  /** The last reported value of each count. A later report may lack some. */
  private readonly known: Partial<Record<'input' | 'output' | 'cached', number | undefined>> = {};
  /** The arguments of each call so far, by the call's index or id. */
  private readonly calls = new Map<string | number, string>();

  constructor(private readonly read: Reader) {}

  take(value: Fields): Fields[] {
    const { read } = this;
    if ('error' in value) read.odd('field', 'error');
    if (value.choices === null || !('choices' in value)) read.odd('usage' in value ? 'field' : 'part', 'choices');
    const choices = read.list(value.choices, 'choices').filter(isFields);
    const choice = choices.find(({ index }) => Number(index ?? 0) === 0);
    if (choices.length > (choice === undefined ? 0 : 1)) read.odd('part', 'choices[1]');
    const usage = this.usage(value, choice ?? {});
    const chunk = choice && this.choice(choice);
    this.isReadable ||= Array.isArray(value.choices) || (usage ?? chunk) !== undefined;
    return (usage ?? chunk) === undefined ? [] : [{ choices: chunk === undefined ? [] : [chunk], usage }];
  }

  end(isWhole: boolean): Fields[] {
    this.isOver = true;
    if (!isWhole || this.isEnding || !this.isComplete()) return [];
    this.read.odd('end', `${CHOICE}.finish_reason`);
    return [{ choices: [{ delta: {}, finish_reason: this.calls.size > 0 ? 'tool_calls' : 'stop' }] }];
  }

  /** Returns whether there is text or a call, and the arguments of each call are complete. */
  private isComplete(): boolean {
    const isSaid = this.hasText || this.calls.size > 0;
    return isSaid && [...this.calls.values()].every((json) => json.trim() === '' || parsed(json) !== undefined);
  }

  private choice(choice: Fields): Fields {
    const { read } = this;
    if (choice.delta === null) read.odd('field', `${CHOICE}.delta`);
    // Some servers send a whole message although a stream was requested, or repeat it at the end of the stream.
    const isWhole = isFields(choice.message) && !isFields(choice.delta);
    if (isWhole) read.odd('field', `${CHOICE}.message`);
    const whole = this.hasText || this.calls.size > 0 ? {} : choice.message;
    const delta = this.delta(read.fields(isWhole ? whole : choice.delta, `${CHOICE}.delta`));
    const reason = read.text(choice.finish_reason, `${CHOICE}.finish_reason`) ?? '';
    // Some servers send one of these values with every chunk.
    if (['', 'null'].includes(reason)) return { delta };
    this.isEnding = true;
    return { delta, finish_reason: reason };
  }

  private delta(delta: Fields): Fields {
    const { read } = this;
    const at = `${CHOICE}.delta`;
    const { text, thoughts } = this.content(delta.content, `${at}.content`);
    if (text !== '') this.hasText = true;
    const calls = read.list(delta.tool_calls, `${at}.tool_calls`);
    const old = delta.function_call ?? null;
    if (old !== null) calls.push({ index: 0, function: old });
    const toolCalls = calls.flatMap((call) => this.toolCall(call, `${at}.tool_calls`));
    // Reasoning in the content stays there, because a server without a field for it does not accept one in requests.
    const parts = [
      { type: 'thinking', thinking: [{ type: 'text', text: thoughts }] },
      { type: 'text', text },
    ];
    return {
      content: thoughts === '' ? text : parts,
      // Some servers send both, one of them empty.
      reasoning_content: read.text(delta.reasoning_content, `${at}.reasoning_content`) || undefined,
      reasoning: read.text(delta.reasoning, `${at}.reasoning`) || undefined,
      tool_calls: toolCalls,
    };
  }

  /** Reads the content: a text, or a list of parts, which are texts or Mistral's reasoning. */
  private content(content: unknown, at: string): { text: string; thoughts: string } {
    if (!isFields(content) && !Array.isArray(content)) return { text: this.read.text(content, at) ?? '', thoughts: '' };
    let text = '';
    let thoughts = '';
    for (const part of this.read.list(content, at)) {
      if (typeof part === 'string') text += this.read.text(part, at) ?? '';
      else if (isFields(part) && part.type === 'thinking') thoughts += this.content(part.thinking, at).text;
      else if (isFields(part) && typeof part.text === 'string') text += part.text;
      else this.read.odd('part', `${at}[]`);
    }
    return { text, thoughts };
  }

  private toolCall(call: unknown, at: string): Fields[] {
    const { read } = this;
    if (!isFields(call)) return read.odd('field', `${at}[]`) ?? [];
    const called = read.fields(call.function, `${at}[].function`);
    const index = read.index(call.index, `${at}[].index`);
    const id = read.word(call.id, `${at}[].id`);
    const name = read.text(called.name, `${at}[].function.name`);
    const json = read.json(called.arguments, `${at}[].function.arguments`);
    const key = index ?? id ?? (name === undefined ? ([...this.calls.keys()].at(-1) ?? 0) : this.calls.size);
    this.calls.set(key, (this.calls.get(key) ?? '') + (json ?? ''));
    return [{ index, id, function: { name, arguments: json }, extra_content: signatureOf(call) }];
  }

  /** Reads the usage. It is beside the choices, except with Groq (`x_groq`) and Kimi (in the choice). */
  private usage(value: Fields, choice: Fields): Fields | undefined {
    const { read } = this;
    const groq = isFields(value.x_groq) ? value.x_groq.usage : undefined;
    const usage = [value.usage, choice.usage, groq].find((one) => one !== undefined && one !== null);
    if (!isFields(usage)) return usage === undefined ? undefined : read.odd('field', 'usage');
    const details = read.fields(usage.prompt_tokens_details, 'usage.prompt_tokens_details');
    const { known } = this;
    known.input = read.tokens(usage.prompt_tokens, 'usage.prompt_tokens') ?? known.input;
    known.output = read.tokens(usage.completion_tokens, 'usage.completion_tokens') ?? known.output;
    known.cached = read.tokens(details.cached_tokens, 'usage.prompt_tokens_details.cached_tokens') ?? known.cached;
    const told = { prompt_tokens: known.input, completion_tokens: known.output };
    return { ...told, prompt_tokens_details: { cached_tokens: known.cached } };
  }
}

/** Gemini refuses a call that is sent back without its signature. */
function signatureOf({ extra_content: extra }: Fields): Fields | undefined {
  const google = isFields(extra) ? extra.google : undefined;
  const signature = isFields(google) ? google.thought_signature : undefined;
  return typeof signature === 'string' ? { google: { thought_signature: signature } } : undefined;
}
