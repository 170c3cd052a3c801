import { createParser, type EventSourceMessage } from 'eventsource-parser';
import { BOUNDS } from '#domain';
import { BodyTooLarge } from '#platform';
import { AnthropicEvents } from './anthropic-events.ts';
import { ChatChunks } from './chat-chunks.ts';
import { isFields, parsed, Reader, type EventsOfProtocol, type Fields } from './json-fields.ts';
import type { ProviderName } from './model-settings.ts';
import type { OnOddity } from './oddities.ts';
import { errorIn, REPORTED } from './reported-error.ts';

/** An answer that says how it ended is over when nothing more of it has come for so long, milliseconds. */
const QUIET_MS = 2_000;
const MAX_LEFT_OUT = BOUNDS.answers.leftOut.value;
/** A byte order mark before a line of a stream, not within its text. */
const LINE_MARK = /\uFEFF(?=(data|event)?:)/g;

/** The answer has nothing that its protocol knows. Asking again would bring the same. */
export class UnreadableAnswer extends Error {
  override name = 'UnreadableAnswer';
}

/**
 * Returns the answer as the provider's package wants it: events that its schemas know, each with no more than it needs, and an
 * end. Providers and compatible servers send more, less and other things than their protocols have, and the package would
 * discard the whole answer for that. The connection is closed as soon as the answer is complete. An error in the stream becomes
 * an event of both protocols (`REPORTED`), after what came before it. The body fails with UnreadableAnswer, BodyTooLarge, and
 * with whatever the answer's body fails with.
 */
export function readTolerantly(
  response: Response,
  { provider, onOddity }: { provider: ProviderName; onOddity: OnOddity },
): Response {
  if (response.body === null) return response;
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  const frames = new Frames(provider, new Reader(onOddity));
  const decoder = new TextDecoder();
  /** Reads on until there is something to pass on; null at the end. */
  const next = async (): Promise<string | null> => {
    let timer: NodeJS.Timeout | undefined;
    let quiet: Promise<null> | undefined;
    let reading: ReturnType<typeof reader.read> | undefined;
    try {
      while (!frames.isOver) {
        // No event may come any more, and only the server could close the connection.
        if (frames.mayBeOver) quiet ??= new Promise((resolve) => (timer = setTimeout(resolve, QUIET_MS, null)));
        reading ??= reader.read();
        const piece = await Promise.race([reading, ...(quiet === undefined ? [] : [quiet])]);
        if (piece !== null) reading = undefined;
        if (piece?.done) frames.end(true, decoder.decode());
        else if (piece === null) {
          frames.end(false);
          quiet = new Promise(() => undefined);
        } else if (frames.feed(decoder.decode(piece.value, { stream: true }))) {
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
    // llama.cpp sends an error as a field of its own.
    onError: ({ field, value = '' }) =>
      field === 'error' ? this.take({ event: field, data: value }) : this.odd('line'),
  });
  private readonly events: EventsOfProtocol;
  private given: Fields[] = [];
  private hasFailed = false;
  private hasOther = false;
  private leftOut = 0;
  /** Whether it is a stream, or one answer of JSON; null until that is clear. */
  private isStream: boolean | null = null;
  private json = '';

  constructor(
    provider: ProviderName,
    private readonly reader: Reader,
  ) {
    this.events = provider === 'anthropic' ? new AnthropicEvents(reader) : new ChatChunks(reader);
  }

  get isOver(): boolean {
    return this.hasFailed || this.events.isOver;
  }

  /** Whether nothing may follow, although the connection stays open. */
  get mayBeOver(): boolean {
    return this.events.isEnding || this.isStream === false;
  }

  /** Returns whether the text belongs to the answer, and is not only a sign of life. */
  feed(text: string): boolean {
    const before = this.given.length;
    this.isStream ??= text.trim() === '' ? null : !/^\s*[{[]/.test(text);
    if (this.isStream !== false) this.parser.feed(text.replaceAll(LINE_MARK, ''));
    else {
      this.leaveOut(text);
      this.json += text;
    }
    return this.given.length > before || (this.isStream === false && text.trim() !== '');
  }

  /** The server closes the connection, or has sent nothing for a while: then JSON that is not whole goes on. */
  end(isClosed: boolean, rest = ''): void {
    this.feed(rest);
    if (!isClosed && this.isStream === false && parsed(this.json) === undefined) return;
    if (this.isStream === false) this.takeText(this.json, undefined);
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
      throw new UnreadableAnswer('The response has no event of its protocol.');
  }

  private odd(place: string, isBlank = false): void {
    this.hasOther ||= !isBlank;
    this.reader.odd('frame', place);
  }

  private take({ event, data }: EventSourceMessage): void {
    if (this.isOver) return;
    if (data.trim() === '[DONE]') this.finish(true);
    else this.takeText(data, event);
  }

  private takeText(text: string, name: string | undefined): void {
    const value = parsed(text);
    // Gemini has its errors in a list.
    const [only = value] = Array.isArray(value) ? (value as unknown[]) : [];
    if (isFields(only)) return this.takeValue(only, text, name);
    // Without the empty lines between them, events are the lines of one.
    const lines = value === undefined ? text.split('\n').filter((line) => line.trim() !== '') : [];
    if (lines.length > 1) return lines.forEach((line) => this.take({ data: line.replace(/^data:/, ''), event: name }));
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
    if (this.leftOut > MAX_LEFT_OUT) throw new BodyTooLarge('The response has too much data outside its events.');
  }
}
