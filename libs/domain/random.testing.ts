/**
 * For specs: returns the number of tries of fast-check, and their seed. Prints the seed; `SEED=… npx jest …` repeats it.
 * The night part `random` has 50 times as many tries. Each round has its own seed.
 */
export function randomRuns(numRuns: number, round = 0): { numRuns: number; seed: number } {
  const seed = Number(process.env.SEED ?? Date.now() % 2 ** 31) + round;
  const { testPath, currentTestName } = expect.getState();
  process.stderr.write(`seed ${seed}: ${testPath?.split('/').at(-1)}, ${currentTestName}\n`);
  return { numRuns: process.env.SPOOL_LONG === '1' ? numRuns * 50 : numRuns, seed };
}
