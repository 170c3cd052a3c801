/** Takes what is to be done at the end, the last first, whatever happens. */
export type Defer = (cleanUp: () => Promise<void>) => void;

export async function withCleanUp(act: (defer: Defer) => Promise<void>): Promise<void> {
  const cleanUps: (() => Promise<void>)[] = [];
  try {
    await act((cleanUp) => cleanUps.unshift(cleanUp));
  } finally {
    for (const cleanUp of cleanUps) await cleanUp();
  }
}
