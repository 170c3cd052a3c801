/** Takes what is to be done at the end, the last first, whatever happens. */
export type Defer = (cleanUp: () => Promise<void>) => void;

export async function withCleanUp<Answer>(act: (defer: Defer) => Promise<Answer>): Promise<Answer> {
  const cleanUps: (() => Promise<void>)[] = [];
  try {
    return await act((cleanUp) => cleanUps.unshift(cleanUp));
  } finally {
    for (const cleanUp of cleanUps) await cleanUp();
  }
}
