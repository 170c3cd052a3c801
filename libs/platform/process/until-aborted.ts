/** Returns the result of `work`, or throws the signal's reason as soon as it aborts. Does not stop the work. */
export async function untilAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  let abort = (): void => undefined;
  const aborted = new Promise<never>((_resolve, reject) => {
    abort = () => reject(signal.reason as Error);
    if (signal.aborted) abort();
    else signal.addEventListener('abort', abort, { once: true });
  });
  try {
    return await Promise.race([aborted, work]);
  } finally {
    signal.removeEventListener('abort', abort);
    // A late rejection of either promise must not end the process.
    work.catch(() => undefined);
    aborted.catch(() => undefined);
  }
}
