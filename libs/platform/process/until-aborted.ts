/** What `work` comes to, or the signal's reason as soon as it aborts: what does not listen is left to itself. */
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
    // Whichever of the two comes too late must not end the process.
    work.catch(() => undefined);
    aborted.catch(() => undefined);
  }
}
