import { setTimeout as delay } from 'node:timers/promises';
import { inspect } from 'node:util';

export interface EventuallyOptions {
  /** What is waited for, as a sentence: "the Run is claimed". */
  what: string;
  /** Long enough for a machine that is busy with much else. It is no bound for the product. */
  timeoutMs?: number;
}

type Truthy<T> = Exclude<T, false | null | undefined | 0 | ''>;
/** Anything but void: an assertion that returns nothing would never be true. */
type Answer = object | string | number | bigint | boolean | null | undefined;

const maxPauseMs = 50;

/**
 * Asks until the answer is truthy, and returns it; a throw means "not yet". For conditions, never a fixed sleep. An
 * assertion has to return something: `eventually(async () => { expect(…); return true; }, …)`.
 */
export async function eventually<T extends Answer>(
  ask: () => T | Promise<T>,
  { what, timeoutMs = 15_000 }: EventuallyOptions,
): Promise<Truthy<T>> {
  const attempt = async (): Promise<{ answer?: T; error?: unknown }> => {
    try {
      return { answer: await ask() };
    } catch (error) {
      return { error };
    }
  };
  const timer = new AbortController();
  const timeout = delay(timeoutMs, 'timeout' as const, { signal: timer.signal });
  let last: { answer?: T | string; error?: unknown } = { answer: 'none, the question is still open' };
  try {
    for (let pauseMs = 2; ; pauseMs = Math.min(2 * pauseMs, maxPauseMs)) {
      const outcome = await Promise.race([timeout, attempt()]);
      if (outcome === 'timeout') break;
      if (outcome.answer) return outcome.answer as Truthy<T>;
      last = outcome;
      if ((await Promise.race([timeout, delay(pauseMs)])) === 'timeout') break;
    }
  } finally {
    timer.abort();
    timeout.catch(() => undefined); // aborting rejects it
  }
  const said = last.error instanceof Error ? last.error.message : inspect(last.error ?? last.answer, { depth: 4 });
  throw new Error(`Waited ${timeoutMs} ms in vain until ${what}. Last answer: ${said}`, { cause: last.error });
}
