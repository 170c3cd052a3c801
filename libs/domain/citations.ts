import { BOUNDS } from './bounds.ts';
import type { FinalOutput } from './events.ts';

/**
 * The longest content of an envelope of provider-private citation markup: U+E200 `cite` U+E202 … U+E201. The bound limits
 * how much text a filter holds back. Longer and unterminated envelopes stay in the text
 * (docs/spec/decisions.md#citation-markup).
 */
const MAX_INNER_LENGTH = BOUNDS.answers.citation.value;

const START = '\uE200';
const END = '\uE201';
const OPENING = `${START}cite\uE202`;
const MAX_HELD = OPENING.length + MAX_INNER_LENGTH;
const [START_CODE, END_CODE] = [START.charCodeAt(0), END.charCodeAt(0)];

/** Returns the text without complete envelopes, and their number. */
export function removeCitations(text: string): { text: string; count: number } {
  if (!text.includes(START)) return { text, count: 0 };
  const envelopes = new OpenEnvelopes();
  const shown = envelopes.take(text) + envelopes.giveUp();
  return { text: shown, count: envelopes.removed };
}

/** Removes citations from text that arrives in deltas. The joined results equal `removeCitations` of the whole text. */
export interface CitationFilter {
  /** Returns the text that can be shown now. */
  push(piece: string): string;
  /** Returns the text that was held back. It is no envelope, because no text follows. */
  end(): string;
}

export function createCitationFilter(): CitationFilter {
  const envelopes = new OpenEnvelopes();
  return { push: (piece) => envelopes.take(piece), end: () => envelopes.giveUp() };
}

/** Returns the final message of a completed Run as callers see it, with a warning that counts the removed citations. */
export function toFinalOutput(message: string): FinalOutput {
  const { text, count } = removeCitations(message);
  return { text, warnings: count === 0 ? [] : [{ code: 'unresolved_provider_citation', count }] };
}

/**
 * The text from the outermost open start on. The starts are a stack, because the removal of an envelope can complete another
 * one around it. A search from the last start only would show the outer envelope. Each character is read only once.
 */
class OpenEnvelopes {
  removed = 0;
  /** The index of the outermost start that can still begin an envelope. Earlier starts are too far back. */
  private first = 0;
  /** The position of each start in all text so far, without removed envelopes. */
  private places: number[] = [];
  /** The index of each start in the text that `take` scans now, with removed envelopes. */
  private starts: number[] = [];
  /** The number of characters of `OPENING` that each start has matched so far. */
  private matched: number[] = [];
  /** The text from the outermost start on, and its position. */
  private held = '';
  private heldFrom = 0;

  /** Returns the text, held or new, that no envelope can remove any more. */
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

  /** Closes the innermost start. Returns its index in the text that `take` scans, or null if no envelope ends here. */
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

  /** Matches the opening. A mismatch drops all starts: the innermost one stays in the text, so no envelope can contain it. */
  private match(code: number): void {
    const last = this.matched.length - 1;
    const matched = this.matched[last] ?? 0;
    if (matched === OPENING.length) return;
    if (code === OPENING.charCodeAt(matched)) this.matched[last] = matched + 1;
    else this.forget();
  }

  /** Drops the starts that are too far before `end`. */
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

/** The kept parts of a text, as ranges. */
class KeptRanges {
  removed = 0;
  /** The begin and end of each range except the last, which begins at `from` and has no end yet. */
  private readonly ends: number[] = [];
  private from = 0;

  constructor(private readonly text: string) {}

  /** Removes the text between two indexes, `to` exclusive. Nothing from `to` on was removed before. */
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

  /** Returns the kept text before the index, and from it on. */
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
