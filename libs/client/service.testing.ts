import { Spool, type SpoolOptions } from './spool.ts';

/** The response of the scripted service to one request. Default: 200. A string is a JSON body or the bytes of a stream. */
export interface Scripted {
  status?: number;
  headers?: Record<string, string>;
  body?: string | ReadableStream<Uint8Array>;
}

export interface Asked {
  method: string;
  url: URL;
  headers: Headers;
  body: unknown;
  /** Receives the whole body. */
  receive: () => Promise<string>;
  signal: AbortSignal | null;
}

/** Answers the requests of a client, in turn. Throw to lose a response. Only the network is scripted; requests and responses are real. */
export class ScriptedService {
  readonly asked: Asked[] = [];

  constructor(private readonly answer: (asked: Asked, n: number) => Scripted | Promise<Scripted>) {}

  client(options: Partial<SpoolOptions> = { token: 'spool_svc_1' }): Spool {
    return new Spool({ baseUrl: 'http://spool.test/api/v1', fetch: this.fetch, ...options });
  }

  private readonly fetch: typeof globalThis.fetch = async (input, init = {}) => {
    const request = new Request(input, init);
    const { method, url, headers, signal } = request;
    const asked = { method, url: new URL(url), headers, body: init.body, receive: () => request.text(), signal };
    const { status = 200, headers: more = {}, body } = await this.answer(asked, this.asked.push(asked));
    const isEmpty = status === 204;
    return new Response(isEmpty ? null : (body ?? '{}'), { status, headers: more });
  };
}

/** Returns a body whose end never comes. It breaks when the request is given up. */
export function endless({ signal }: Asked, ...chunks: string[]): ReadableStream<Uint8Array> {
  return new ReadableStream({
    start(body) {
      for (const chunk of chunks) body.enqueue(new TextEncoder().encode(chunk));
      signal!.addEventListener('abort', () => body.error(signal!.reason));
    },
  });
}

export const STREAM = { 'content-type': 'text/event-stream; charset=utf-8' };

/** Returns the response that refuses a request. */
export function refusal(status: number, code: string, headers: Record<string, string> = {}): Scripted {
  return { status, headers, body: JSON.stringify({ error: { code, message: `It is ${code}.` } }) };
}

/** Fakes the timers, except those that reading a response body needs. */
export function useFastTime(): void {
  jest.useFakeTimers({ doNotFake: ['nextTick', 'setImmediate', 'clearImmediate', 'queueMicrotask'] });
}

/** Runs the timers until the promise settles, as fast as they can. For specs with fake timers. */
export async function hurry<T>(promise: Promise<T>): Promise<T> {
  let isSettled = false;
  const settle = (): void => void (isSettled = true);
  promise.then(settle, settle);
  while (!isSettled) await jest.advanceTimersByTimeAsync(1_000);
  return promise;
}
