import type { ULIDFactory } from 'ulid';
import { runningScheduler } from './simulated-time.ts';

/** What the spec puts in the place of modules that the globals do not reach. */

interface SleepOptions {
  signal?: AbortSignal;
}

/** `setTimeout` of node:timers/promises, by whatever the global one is now. */
export function sleep<T>(ms: number, value?: T, { signal }: SleepOptions = {}): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => resolve(value), ms);
    signal?.addEventListener('abort', () => {
      clearTimeout(timer);
      reject(signal.reason as Error);
    });
  });
}

/**
 * Ids as monotonic ULIDs are: by time, and each higher than the one before of its factory. That of `newId` lives as long as
 * its module, so it begins anew in each simulation; and the real one takes 16 random numbers for an id.
 */
export function monotonicFactory(): ULIDFactory {
  let scheduler: object | null = null;
  let last = 0;
  let count = 0;
  let factory = '';
  return (now = Date.now()) => {
    if (scheduler !== runningScheduler()) {
      scheduler = runningScheduler();
      last = 0;
      factory = String(Math.floor(Math.random() * 1e6)).padStart(6, '0');
    }
    count = now > last ? 0 : count + 1;
    last = Math.max(last, now);
    return `${encodeTime(last)}${factory}${String(count).padStart(10, '0')}`;
  };
}

const DIGITS = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';

let encodedTime = 0;
let encoded = '';

function encodeTime(ms: number): string {
  if (ms === encodedTime) return encoded;
  let text = '';
  for (let rest = ms; text.length < 10; rest = Math.floor(rest / 32)) text = DIGITS.charAt(rest % 32) + text;
  encodedTime = ms;
  encoded = text;
  return text;
}
