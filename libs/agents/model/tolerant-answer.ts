import { createParser, type EventSourceMessage } from 'eventsource-parser';
import { BodyTooLarge } from '#platform';
import { AnthropicEvents } from './anthropic-events.ts';
import { ChatChunks } from './chat-chunks.ts';
import { isFields, parsed, Reader, type EventsOfProtocol, type Fields } from './json-fields.ts';
import type { ProviderName } from './model-settings.ts';
import type { OnOddity } from './oddities.ts';

/** An answer that says how it ended is over when nothing more of it has come for so long, milliseconds. */
const QUIET_MS = 2_000;
/** Of an answer may be left out, UTF-16 units: a server could send for ever what nobody takes. */
const MAX_LEFT_OUT = 4 * 1024 * 1024;

/** The type of an error that the provider sent in its answer. Its message is the JSON of what was sent. */
export const REPORTED = 'reported_in_answer';

/** The answer has nothing that its protocol knows. Asking again would bring the same. */
export class UnreadableAnswer extends Error {}

/**
 * Returns the answer as the provider's package wants it: events that its schemas know, each with no more than it needs, and an end.
 * Providers and those who imitate them send more, less and other things than their protocols have. The package would throw the
 * whole answer away for that. The connection is closed as soon as the answer is complete. An error that the provider sends
 * becomes an event of both protocols (`REPORTED`), behind what came before it. The body fails with UnreadableAnswer, BodyTooLarge, and with whatever the answer's body fails with.
 */
export function readTolerantly(
  response: Response,
  { provider, onOddity }: { provider: ProviderName; onOddity: OnOddity },
): Response {
  if (response.body === null) return response;
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  const frames = new Frames(provider, onOddity);
  const decoder = new TextDecoder();
  /** Reads on until there is something to pass on; null at the end. */
  const next = async (): Promise<string | null> => {
    let timer: NodeJS.Timeout | undefined;
    let quiet: Promise<null> | undefined;
    try {
      while (!frames.isOver) {
        // No event may come any more, and only the server could close the connection.
        if (frames.events.isEnding) quiet ??= new Promise((resolve) => (timer = setTimeout(resolve, QUIET_MS, null)));
        const piece = await Promise.race([reader.read(), ...(quiet === undefined ? [] : [quiet])]);
        if (piece === null || piece.done) frames.end(piece !== null, decoder.decode());
        else if (frames.feed(decoder.decode(piece.value, { stream: true }))) {
          clearTimeout(timer);
          quiet = undefined;
        }
        const events = frames.taken();
        if (events !== '') return events;
      }
      return null;
    } finally {
      clearTimeout(timer);
    }
  };
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const events = await next();
        if (events !== null) return controller.enqueue(Buffer.from(events));
        controller.close();
        reader.cancel().catch(() => undefined);
      } catch (error) {
        controller.error(error);
        reader.cancel(error).catch(() => undefined);
      }
    },
    cancel: (reason) => reader.cancel(reason),
  });
  return new Response(body, response);
}

/** Takes the text of a stream apart, and puts together what the package is given. */
class Frames {
  private readonly parser = createParser({
    onEvent: (event) => this.take(event),
    onError: () => this.odd('line'),
  });
  readonly events: EventsOfProtocol;
  private readonly reader: Reader;
  private given: Fields[] = [];
  private frames = 0;
  private hasFailed = false;
  private hasOther = false;
  private leftOut = 0;
  /** Whether it is a stream, or one answer of JSON; null until that is clear. */
  private isStream: boolean | null = null;
  private readonly json: string[] = [];

  constructor(provider: ProviderName, onOddity: OnOddity) {
    this.reader = new Reader(onOddity);
    this.events = provider === 'anthropic' ? new AnthropicEvents(this.reader) : new ChatChunks(this.reader);
  }

  get isOver(): boolean {
    return this.hasFailed || this.events.isOver;
  }

  /** Returns whether it had an event. */
  feed(text: string): boolean {
    const before = this.frames;
    this.isStream ??= text.trim() === '' ? null : !text.trimStart().startsWith('{');
    if (this.isStream === false) this.json.push(text);
    else this.parser.feed(text);
    return this.frames > before;
  }

  end(isClosed: boolean, rest: string): void {
    this.feed(rest);
    if (this.isStream === false) this.takeText(this.json.join(''), undefined);
    // The last event may lack the empty line after it.
    else if (isClosed) this.parser.feed('\n\n');
    if (!isClosed) this.reader.odd('end', 'connection');
    if (!this.isOver) this.finish(false);
  }

  /** Returns what the package is given next, as server-sent events. */
  taken(): string {
    const text = this.given.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('');
    this.given = [];
    return text;
  }

  private finish(isWhole: boolean): void {
    this.given.push(...this.events.end(isWhole));
    if (this.hasOther && !this.events.isReadable)
      throw new UnreadableAnswer('The answer has no event of its protocol.');
  }

  private odd(place: string, isBlank = false): void {
    this.hasOther ||= !isBlank;
    this.reader.odd('frame', place);
  }

  private take({ event, data }: EventSourceMessage): void {
    if (this.isOver) return;
    this.frames++;
    if (data.trim() === '[DONE]') this.finish(true);
    else this.takeText(data, event);
  }

  private takeText(text: string, name: string | undefined): void {
    const value = parsed(text);
    if (isFields(value)) return this.takeValue(value, text, name);
    // Without the empty lines between them, events are the lines of one.
    const lines = value === undefined ? text.split('\n').filter((line) => line.trim() !== '') : [];
    if (lines.length > 1) return lines.forEach((data) => this.take({ data, event: name }));
    if (name === 'error') return this.report({ message: text });
    // Blank events keep the connection open: an answer of nothing else was cut off.
    this.odd('data', value === null || text.trim() === '');
    this.leaveOut(text);
  }

  private takeValue(value: Fields, text: string, name: string | undefined): void {
    const error = errorIn(value) ?? (name === 'error' ? value : undefined);
    if (error !== undefined) return this.report(error);
    const events = this.events.take(value, name);
    if (!this.events.isReadable) this.hasOther = true;
    if (events.length === 0) this.leaveOut(text);
    this.given.push(...events);
  }

  private report(body: Fields): void {
    this.hasFailed = true;
    this.given.push({ type: 'error', error: { type: REPORTED, message: JSON.stringify(body) } });
  }

  private leaveOut(text: string): void {
    this.leftOut += text.length;
    if (this.leftOut > MAX_LEFT_OUT) throw new BodyTooLarge('The answer has too much that is no part of it.');
  }
}

/** Returns what is sent in place of an event if it is an error. Beside an answer, an empty error means that there is none. */
function errorIn(event: Fields): Fields | undefined {
  const { error, choices, message, detail } = event;
  if (isFields(error) ? Object.keys(error).length > 0 : typeof error === 'string' && error !== '') return event;
  if (event.object === 'error' || event.type === 'error') return event;
  const [choice] = Array.isArray(choices) ? (choices as unknown[]) : [];
  if (isFields(choice) && choice.finish_reason === 'error') return choice;
  const isBare = choices === undefined && [message, detail].some((text) => typeof text === 'string');
  return isBare ? event : undefined;
}
