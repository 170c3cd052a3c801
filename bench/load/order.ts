import type { Figures } from '../measure.ts';

/** One round of load. */
export interface LoadOrder {
  flow: 'accept' | 'list' | 'round-trip' | 'first-text' | 'run-started';
  /** The origin of the API, without its base path. */
  origin: string;
  agentId: string;
  /** The clients share these service tokens. */
  tokens: string[];
  /** Whether each create request carries its own Idempotency-Key. */
  keyed: boolean;
  connections: number;
  /** The length of the round, or its number of operations. */
  until: { ms: number } | { operations: number };
}

export interface LoadAnswer {
  figures: Figures;
  /** The bytes of HTTP over all connections of the round. */
  bytes: { sent: number; received: number };
}

export const BASE_PATH = '/api/v1';

export const TEXT = 'Hello, how are you today?';
const content = [{ type: 'text', text: TEXT }];

/** Bodies of the requests. */
export const CREATE_THREAD = JSON.stringify({ userId: 'bench', input: { type: 'user.message', content } });
/** Its answer has pauses, so that the first text does not arrive with the end of the Run. */
export const CREATE_SLOW_THREAD = CREATE_THREAD.replace(TEXT, `/pause 1 ${TEXT}`);
export const CREATE_EMPTY_THREAD = JSON.stringify({ userId: 'bench' });
export const SEND_MESSAGE = JSON.stringify({ events: [{ type: 'user_message', text: TEXT }] });
