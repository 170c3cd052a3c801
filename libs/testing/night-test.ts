/** Whether a night part runs (scripts/night.mjs). */
export const isNight = process.env.SPOOL_LONG === '1';

/** Defines a test that runs only at night, for example because it only measures. Its file must belong to a night part. */
export function nightTest(...definition: Parameters<jest.It>): void {
  if (isNight) test(...definition);
}

nightTest.each = ((...cases: Parameters<jest.Each>) =>
  isNight ? test.each(...cases) : () => undefined) as unknown as jest.Each;
