import type { IncomingHttpHeaders } from 'node:http';
import type { Turn } from './asked.ts';
import type { ErrorKind, Finish, Step } from './script.ts';

/** All that is said in one step. */
export interface Answer {
  /** Of this request alone; ids on the wire are made of it. */
  id: string;
  model: string;
  thinking?: { pieces: string[]; signature: string };
  text: string[];
  toolCalls: { id: string; name: string; pieces: string[] }[];
  usage: Step['usage'];
  finish: Finish;
}

/** An answer as server-sent events. What opens and closes a block is with its first and last piece. */
export interface Frames {
  before: string;
  pieces: string[];
  /** With how it ended and the usage. */
  after: string;
}

export interface ErrorBody {
  status: number;
  body: unknown;
}

/** What was given out to callers, and must come back unchanged. */
export interface GivenOut {
  /** Of `thoughtKey`. */
  thoughts: ReadonlySet<string>;
  /** By the id of a tool call: the signature of the thinking before it. */
  signatures: ReadonlyMap<string, string>;
}

export const thoughtKey = (thinking: string, signature: string): string => JSON.stringify([thinking, signature]);

/** A request that was found right. */
export interface Read {
  model: string;
  turns: Turn[];
  frames(answer: Answer): Frames;
}

export interface Protocol {
  name: 'openai' | 'anthropic';
  path: string;
  idHeader: string;
  toolCallId(id: string): string;
  keyOf(headers: IncomingHttpHeaders): string | undefined;
  /** What is wrong with the request, in the provider's words, if something is. */
  read(body: unknown, headers: IncomingHttpHeaders, givenOut: GivenOut): Read | string;
  error(kind: ErrorKind, message?: string): ErrorBody;
  /** `body`: instead of the protocol's own. */
  errorEvent(kind: ErrorKind, body?: unknown): string;
}
