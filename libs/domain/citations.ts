import type { FinalOutput } from './events.ts';

/**
 * Provider-private citation markup: U+E200 `cite` U+E202 … U+E201. What lies between is bounded, so that a filter never
 * holds back more than this many characters and the opening; a longer one is no envelope. Unterminated ones stay
 * (docs/spec/decisions.md#citation-markup).
 */
const MAX_INNER_LENGTH = 4_096;

const START = '\uE200';
const END = '\uE201';
const OPENING = `${START}cite\uE202`;
const MAX_HELD = OPENING.length + MAX_INNER_LENGTH;
const [START_CODE, END_CODE] = [START.charCodeAt(0), END.charCodeAt(0)];

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
 * The text from the outermost open start on. The starts are a stack, because an envelope that is removed may leave another
 * one around it: looking only from the last start on would show the outer one whole. Each character is looked at once.
 */
class OpenEnvelopes {
  removed = 0;
  /** The starts that an end may still make an envelope of: those from `first` on, outermost first. */
  private first = 0;
  /** Where each is in all text so far, without what was removed. */
  private places: number[] = [];
  /** Where each is in what `take` looks through now, with what was removed. */
  private starts: number[] = [];
  /** How many characters of `OPENING` each has so far. */
  private matched: number[] = [];
  /** The text from the outermost on, and its place. */
  private held = '';
  private heldFrom = 0;

  /** What of the text is sure not to be removed. */
  take(text: string): string {
    if (this.held === '' && !text.includes(START)) return text;
    const whole = this.held + text;
    const kept = new KeptRanges(whole);
    this.starts = this.places.map((place) => place - this.heldFrom);
    for (let at = this.held.length; at < whole.length; at++) {
      if (this.places.length === 0) {
        at = whole.indexOf(START, at);
        if (at === -1) break;
      }
      const code = whole.charCodeAt(at);
      const place = this.heldFrom + at - kept.removed;
      if (code === START_CODE) {
        this.places.push(place);
        this.matched.push(1);
        this.starts.push(at);
        if (this.places.length - this.first > MAX_HELD) this.shorten(place);
      } else if (code !== END_CODE) this.match(code);
      else {
        const start = this.close(place);
        if (start !== null) kept.remove(start, at + 1);
      }
    }
    const end = this.heldFrom + whole.length - kept.removed;
    this.shorten(end);
    const [shown, held] = kept.split(this.starts[this.first] ?? whole.length);
    this.held = held;
    this.heldFrom = end - held.length;
    return shown;
  }

  giveUp(): string {
    const text = this.held;
    this.held = '';
    this.forget();
    return text;
  }

  /** Closes the innermost start. Returns where it is in what `take` looks through, or null if no envelope ends here. */
  private close(place: number): number | null {
    this.shorten(place);
    if (this.matched.at(-1) !== OPENING.length) {
      this.forget();
      return null;
    }
    this.removed += 1;
    this.matched.pop();
    this.places.pop();
    const start = this.starts.pop() ?? null;
    if (this.places.length === this.first) this.forget();
    return start;
  }

  /** What cannot become an envelope stays, and a start that stays is in none. */
  private match(code: number): void {
    const last = this.matched.length - 1;
    const matched = this.matched[last] ?? 0;
    if (matched === OPENING.length) return;
    if (code === OPENING.charCodeAt(matched)) this.matched[last] = matched + 1;
    else this.forget();
  }

  /** Lets go of the starts that are too far before `end`. */
  private shorten(end: number): void {
    while (this.first < this.places.length && end - (this.places[this.first] ?? 0) > MAX_HELD) this.first += 1;
    if (this.first === this.places.length) this.forget();
    else if (this.first > MAX_HELD) {
      this.places = this.places.slice(this.first);
      this.matched = this.matched.slice(this.first);
      this.starts = this.starts.slice(this.first);
      this.first = 0;
    }
  }

  private forget(): void {
    this.places = [];
    this.matched = [];
    this.starts = [];
    this.first = 0;
  }
}

/** What is left of a text, as ranges of it. */
class KeptRanges {
  removed = 0;
  /** The beginning of each range and its end, but for the last, which begins at `from` and has no end yet. */
  private readonly ends: number[] = [];
  private from = 0;

  constructor(private readonly text: string) {}

  /** Removes what is from one index to before another; nothing from the second on was removed before. */
  remove(from: number, to: number): void {
    this.removed += to - this.from;
    while (from < this.from) {
      const end = this.ends.pop() ?? 0;
      this.from = this.ends.pop() ?? 0;
      this.removed += end - this.from;
    }
    if (from > this.from) this.ends.push(this.from, from);
    this.removed -= from - this.from;
    this.from = to;
  }

  /** Returns what is left before the index, and from it on. */
  split(at: number): [string, string] {
    const ends = [...this.ends, this.from, this.text.length];
    const [before, after]: [string[], string[]] = [[], []];
    for (let i = 0; i < ends.length; i += 2) {
      const [from = 0, to = 0] = [ends[i], ends[i + 1]];
      if (from < at) before.push(this.text.slice(from, Math.min(to, at)));
      if (to > at) after.push(this.text.slice(Math.max(from, at), to));
    }
    return [before.join(''), after.join('')];
  }
}
