import type { FinalOutput } from './events.ts';

/**
 * Provider-private citation markup: U+E200 `cite` U+E202 … U+E201. What lies between is bounded, so that a filter never
 * holds back more than this many characters and the opening; a longer one is no envelope. Unterminated ones stay
 * (decisions, section 4).
 */
const MAX_INNER_LENGTH = 4_096;

const START = '\uE200';
const END = '\uE201';
const OPENING = `${START}cite\uE202`;
const MAX_HELD = OPENING.length + MAX_INNER_LENGTH;
/** Cuts text so that starts are at the beginning of a part and ends are parts of their own. */
const BETWEEN_MARKS = /(?=[\uE200\uE201])|(?<=\uE201)/;

/** The text without whole envelopes, and how many there were. */
export function removeCitations(text: string): { text: string; count: number } {
  if (!text.includes(START)) return { text, count: 0 };
  const envelopes = new OpenEnvelopes();
  const shown = envelopes.take(text) + envelopes.giveUp();
  return { text: shown, count: envelopes.removed };
}

/** Removes citations from text that comes in pieces: the pieces given out, joined, are `removeCitations` of the whole. */
export interface CitationFilter {
  /** What of the text so far may be shown now. */
  push(piece: string): string;
  /** What was held back: there is no more text, so it was no envelope. */
  end(): string;
}

export function createCitationFilter(): CitationFilter {
  const envelopes = new OpenEnvelopes();
  return { push: (piece) => envelopes.take(piece), end: () => envelopes.giveUp() };
}

/** What a completed Run shows of its final message: public-safe, with what was removed counted. */
export function toFinalOutput(message: string): FinalOutput {
  const { text, count } = removeCitations(message);
  return { text, warnings: count === 0 ? [] : [{ code: 'unresolved_provider_citation', count }] };
}

/**
 * The text from each start on that an end may still make an envelope of, outermost first. A stack, because an envelope
 * that is removed may leave another one around it: looking only from the last start on would show the outer one whole.
 */
class OpenEnvelopes {
  removed = 0;
  private open: string[] = [];
  private length = 0;

  /** What of the text is sure not to be removed. */
  take(text: string): string {
    if (this.open.length === 0 && !text.includes(START)) return text;
    return text
      .split(BETWEEN_MARKS)
      .map((part) => (part === END ? this.close() : this.lengthen(part)))
      .join('');
  }

  giveUp(): string {
    const text = this.open.join('');
    this.open = [];
    this.length = 0;
    return text;
  }

  private close(): string {
    if (!this.open.at(-1)?.startsWith(OPENING)) return this.giveUp() + END;
    this.length -= this.open.pop()?.length ?? 0;
    this.removed += 1;
    return '';
  }

  private lengthen(part: string): string {
    if (part.startsWith(START)) this.open.push(part);
    else if (this.open.length === 0) return part;
    else this.open.push(this.open.pop() + part);
    this.length += part.length;
    const last = this.open.at(-1) ?? '';
    // What cannot become an envelope stays, and a start that stays is in none.
    if (!OPENING.startsWith(last) && !last.startsWith(OPENING)) return this.giveUp();
    return this.shorten();
  }

  private shorten(): string {
    let sure = '';
    while (this.length > MAX_HELD) {
      const outermost = this.open.shift() ?? '';
      this.length -= outermost.length;
      sure += outermost;
    }
    return sure;
  }
}
