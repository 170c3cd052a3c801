/**
 * For specs: how often fast-check tries, and from which seed. The seed is printed; `SEED=… npx jest …` repeats it.
 * The night part `random` tries 50 times as many. Another round of the same has another seed.
 */
export function randomRuns(numRuns: number, round = 0): { numRuns: number; seed: number } {
  const seed = Number(process.env.SEED ?? Date.now() % 2 ** 31) + round;
  const { testPath, currentTestName } = expect.getState();
  process.stderr.write(`seed ${seed}: ${testPath?.split('/').at(-1)}, ${currentTestName}\n`);
  return { numRuns: process.env.SPOOL_LONG === '1' ? numRuns * 50 : numRuns, seed };
}
