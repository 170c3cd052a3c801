import { setTimeout as pause } from 'node:timers/promises';
import type { Caller } from './client.ts';

/**
 * What a client knows of a request: `ok`; `busy` and `away`, to be sent again with the same key; `failed`, any other answer;
 * `unknown`, no answer after sending.
 */
export const OUTCOMES = ['ok', 'busy', 'away', 'failed', 'unknown'] as const;
export type Outcome = (typeof OUTCOMES)[number];

export interface Sent {
  key: string;
  /** Which of the pods it was sent to. */
  pod: number;
  sentAt: number;
  answeredAt: number;
  outcome: Outcome;
  status: number | null;
  replayed: boolean;
  /** The body of the answer as it came; of an unknown one, what was thrown. */
  text: string;
}

export interface KeyedRequest {
  key: string;
  path: string;
  /** Without one it is a GET. */
  body?: unknown;
}

export interface Patience {
  /** How long a call is sent again and again. */
  giveUpMs: number;
  /** Between two requests of a call. */
  pauseMs: number;
  /** How long one request waits for its answer. */
  answerMs: number;
}

/** Retry-After is whole seconds; in tests a second is this long, milliseconds. */
const SECOND_MS = 20;
/** No key is in progress for longer; outages included, a call takes no longer either. */
export const GIVE_UP_MS = 30_000;

/** A client that sends everything with a key, and records every request. */
export class KeyedClient {
  readonly requests: Sent[] = [];
  private isGivenUp = false;

  /** @param callers one for each pod, as the pod is now */
  constructor(
    private readonly callers: readonly (() => Caller)[],
    private readonly patience: Patience = { giveUpMs: GIVE_UP_MS, pauseMs: SECOND_MS, answerMs: GIVE_UP_MS },
  ) {}

  /** One request, whatever becomes of it. */
  async send(pod: number, request: KeyedRequest): Promise<Sent> {
    const { baseUrl, token } = this.callers[pod]!();
    const sentAt = Date.now();
    const answer = await ask(`${baseUrl}${request.path}`, token, request, this.patience.answerMs);
    const sent = { key: request.key, pod, sentAt, answeredAt: Date.now(), ...answer };
    this.requests.push(sent);
    return sent;
  }

  /** Sends until there is an answer, to the pods in turn; throws when that takes too long or the answer is no success. */
  async call(pod: number, request: KeyedRequest): Promise<Sent> {
    const { giveUpMs, pauseMs } = this.patience;
    const giveUpAt = Date.now() + giveUpMs;
    for (let at = pod; Date.now() < giveUpAt && !this.isGivenUp; at++) {
      const sent = await this.send(at % this.callers.length, request);
      if (sent.outcome === 'ok') return sent;
      if (sent.outcome === 'failed') throw new Error(`${request.key}: ${sent.status} ${sent.text}`);
      await pause(pauseMs);
    }
    throw new Error(`${request.key} was without an answer for ${giveUpMs} ms`);
  }

  /** Nothing more is sent again. */
  giveUp(): void {
    this.isGivenUp = true;
  }

  /** The longest time from the first "in progress" of a key to its next other answer, milliseconds. */
  longestInProgress(): number {
    const since = new Map<string, number>();
    let longest = 0;
    for (const { key, outcome, answeredAt } of this.requests.toSorted((a, b) => a.answeredAt - b.answeredAt)) {
      if (outcome === 'busy') since.set(key, since.get(key) ?? answeredAt);
      if (outcome === 'busy' || outcome === 'ok')
        longest = Math.max(longest, answeredAt - (since.get(key) ?? answeredAt));
      if (outcome === 'ok') since.delete(key);
    }
    return longest;
  }
}

type Answered = Pick<Sent, 'outcome' | 'status' | 'replayed' | 'text'>;

async function ask(url: string, token: string, { key, body }: KeyedRequest, answerMs: number): Promise<Answered> {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json', 'idempotency-key': key };
  const post = { method: 'POST', headers, body: typeof body === 'string' ? body : JSON.stringify(body) };
  const get = { headers: { authorization: headers.authorization } };
  try {
    const signal = AbortSignal.timeout(answerMs);
    const response = await fetch(url, { ...(body === undefined ? get : post), signal });
    const text = await response.text();
    const replayed = response.headers.get('idempotency-replayed') === 'true';
    return { outcome: outcomeOf(response, text), status: response.status, replayed, text };
  } catch (error) {
    return { outcome: 'unknown', status: null, replayed: false, text: String(error) };
  }
}

function outcomeOf({ ok, status, headers }: Response, text: string): Outcome {
  if (ok) return 'ok';
  if (status === 503 && headers.has('retry-after')) return 'away';
  // Still processing (docs/spec/agent-threads-api.md#errors). Without Retry-After nobody could know that it is to be
  // sent again.
  const isBusy = status === 409 && headers.get('retry-after') === '1' && text.includes('"idempotency_conflict"');
  return isBusy ? 'busy' : 'failed';
}
