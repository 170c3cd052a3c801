import { isMark, parseExactly, stringifyExactly } from '../exact-numbers.ts';
import type { OddityKind, OnOddity } from './oddities.ts';

export type Fields = Record<string, unknown>;

export const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Reads the events of one answer according to its protocol. */
export interface EventsOfProtocol {
  /** Whether the answer has given its finish reason, so that only usage can follow. */
  readonly isEnding: boolean;
  /** Whether the answer has ended as its protocol defines. */
  readonly isOver: boolean;
  /** Whether at least one event was one of the protocol. */
  readonly isReadable: boolean;
  /** Returns the events that the provider's package gets in place of one. `name` is that of the server-sent event. */
  take(event: Fields, name: string | undefined): Fields[];
  /** Returns the missing last events of an ended stream. `isWhole`: the stream had the end that its protocol defines. */
  end(isWhole: boolean): Fields[];
}

/** Parses JSON. Returns undefined if the text is not JSON. */
export function parsed(text: string): unknown {
  try {
    return parseExactly(text);
  } catch {
    return undefined;
  }
}

/** Reads fields of any type, and reports those that violate the protocol. Null is the same as absent. */
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

  /** Reads a list. A single object counts as a list of one entry. */
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

  /** Reads a text that some servers send as a number, such as an id. */
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

  /** Reads a number of tokens: a safe integer that is not negative. */
  tokens(value: unknown, place: string): number | undefined {
    if (Number.isSafeInteger(value) && (value as number) >= 0) return value as number;
    return value === undefined || value === null ? undefined : this.odd('number', place);
  }

  /** Reads the arguments of a call as JSON text. Some servers send an object. */
  json(value: unknown, place: string): string | undefined {
    if (typeof value !== 'object' || value === null) return this.text(value, place);
    this.odd('field', place);
    return stringifyExactly(value);
  }
}
