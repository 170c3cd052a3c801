import { setTimeout as pause } from 'node:timers/promises';
import type { Caller } from './client.ts';

/**
 * What a client knows of a request: `ok`; `busy`, to be sent again with the same key; `failed`, any other answer; `unknown`,
 * no answer after sending.
 */
export type Outcome = 'ok' | 'busy' | 'failed' | 'unknown';

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
  body: unknown;
}

/** Retry-After is whole seconds; in tests a second is this long, milliseconds. */
const SECOND_MS = 20;
/** No key is in progress for longer (quality.md, F3); outages included, a call takes no longer either. */
export const GIVE_UP_MS = 30_000;

/** A client that sends everything with a key, and records every request. */
export class KeyedClient {
  readonly requests: Sent[] = [];

  /** @param callers one for each pod, as the pod is now */
  constructor(private readonly callers: readonly (() => Caller)[]) {}

  /** One request, whatever becomes of it. */
  async send(pod: number, { key, path, body }: KeyedRequest): Promise<Sent> {
    const { baseUrl, token } = this.callers[pod]!();
    const sentAt = Date.now();
    const answer = await post(`${baseUrl}${path}`, token, key, body);
    const sent = { key, pod, sentAt, answeredAt: Date.now(), ...answer };
    this.requests.push(sent);
    return sent;
  }

  /** Sends until there is an answer, to the pods in turn; throws when that takes too long or the answer is no success. */
  async call(pod: number, request: KeyedRequest): Promise<Sent> {
    const giveUpAt = Date.now() + GIVE_UP_MS;
    for (let at = pod; Date.now() < giveUpAt; at++) {
      const sent = await this.send(at % this.callers.length, request);
      if (sent.outcome === 'ok') return sent;
      if (sent.outcome === 'failed') throw new Error(`${request.key}: ${sent.status} ${sent.text}`);
      await pause(SECOND_MS);
    }
    throw new Error(`${request.key} was without an answer for ${GIVE_UP_MS} ms`);
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

async function post(url: string, token: string, key: string, body: unknown): Promise<Answered> {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json', 'idempotency-key': key };
  try {
    const init = { method: 'POST', headers, body: typeof body === 'string' ? body : JSON.stringify(body) };
    const response = await fetch(url, init);
    const text = await response.text();
    const replayed = response.headers.get('idempotency-replayed') === 'true';
    return { outcome: outcomeOf(response, text), status: response.status, replayed, text };
  } catch (error) {
    return { outcome: 'unknown', status: null, replayed: false, text: String(error) };
  }
}

function outcomeOf({ ok, status, headers }: Response, text: string): Outcome {
  if (ok) return 'ok';
  // The contract, section 7: still processing. Without Retry-After nobody could know that it is to be sent again.
  const isBusy = status === 409 && headers.get('retry-after') === '1' && text.includes('"idempotency_conflict"');
  return isBusy ? 'busy' : 'failed';
}
