import { isMark, parseExactly, stringifyExactly } from '../exact-numbers.ts';
import type { OddityKind, OnOddity } from './oddities.ts';

export type Fields = Record<string, unknown>;

export const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Reads the events of one answer by its protocol. */
export interface EventsOfProtocol {
  /** Whether the answer has said how it ended, so that no more than usage can follow. */
  readonly isEnding: boolean;
  /** Whether the protocol's own end has come. */
  readonly isOver: boolean;
  /** Whether there was anything that the protocol knows. */
  readonly isReadable: boolean;
  /** Returns the events that the provider's package is given for one. `name`: of the server-sent event. */
  take(event: Fields, name: string | undefined): Fields[];
  /** Returns what is missing where the stream has ended, `isWhole` by the protocol's own end. */
  end(isWhole: boolean): Fields[];
}

/** Undefined where it is no JSON. */
export function parsed(text: string): unknown {
  try {
    return parseExactly(text);
  } catch {
    return undefined;
  }
}

/** Reads the fields of an event whatever they are, and reports those that are not as the protocol has them. Null is absent. */
export class Reader {
  constructor(private readonly onOddity: OnOddity) {}

  odd(kind: OddityKind, place: string): undefined {
    this.onOddity(kind, place);
    return undefined;
  }

  fields(value: unknown, place: string): Fields {
    if (isFields(value)) return value;
    if (value !== undefined && value !== null) this.odd('field', place);
    return {};
  }

  /** One that is no list, but an entry, is a list of it. */
  list(value: unknown, place: string): unknown[] {
    if (Array.isArray(value)) return value;
    if (value === undefined || value === null) return [];
    this.odd('field', place);
    return isFields(value) ? [value] : [];
  }

  text(value: unknown, place: string): string | undefined {
    if (typeof value === 'string' && !isMark(value)) return value;
    return value === undefined || value === null ? undefined : this.odd('field', place);
  }

  /** An id or a number that may be a text, or the other way round. */
  word(value: unknown, place: string): string | undefined {
    if (typeof value !== 'number') return this.text(value, place);
    this.odd('field', place);
    return String(value);
  }

  index(value: unknown, place: string): number | undefined {
    if (value === undefined || value === null) return undefined;
    if (Number.isSafeInteger(value)) return value as number;
    this.odd('field', place);
    return typeof value === 'string' && /^\d{1,9}$/.test(value) ? Number(value) : undefined;
  }

  /** A number of tokens: whole, not negative, and exact in a double. */
  tokens(value: unknown, place: string): number | undefined {
    if (Number.isSafeInteger(value) && (value as number) >= 0) return value as number;
    return value === undefined || value === null ? undefined : this.odd('number', place);
  }

  /** Arguments of a call as text, which is how the protocols have them. */
  json(value: unknown, place: string): string | undefined {
    if (typeof value !== 'object' || value === null) return this.text(value, place);
    this.odd('field', place);
    return stringifyExactly(value);
  }
}
