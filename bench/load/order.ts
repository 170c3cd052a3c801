/** What the load process is asked to do: one round. */
export interface LoadOrder {
  flow: 'accept' | 'round-trip' | 'run-started';
  /** Where the API is, without its base path. */
  origin: string;
  agentId: string;
  token: string;
  /** Whether creating carries an Idempotency-Key, another one each time. */
  keyed: boolean;
  connections: number;
  forMs: number;
}

export const BASE_PATH = '/api/v1';

const TEXT = 'Hello, how are you today?';
const content = [{ type: 'text', text: TEXT }];

/** Bodies of the requests. */
export const CREATE_THREAD = JSON.stringify({ userId: 'bench', input: { type: 'user.message', content } });
export const CREATE_EMPTY_THREAD = JSON.stringify({ userId: 'bench' });
export const SEND_MESSAGE = JSON.stringify({ events: [{ type: 'user_message', text: TEXT }] });
