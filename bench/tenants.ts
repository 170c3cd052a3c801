import { type MeasuringTests, runSpecs } from './run-specs.ts';
import { SIZE_NAME } from './sizes.ts';

const ALL: MeasuringTests = { file: 'test/faults/(event-loop-api|event-loop-worker|hostile-tenant)\\.e2e' };
const TINY: MeasuringTests = { file: 'test/faults/event-loop-api\\.e2e', tests: 'getAgent$' };

/**
 * Measures what one tenant can do to others: the delays of the event loops with the largest inputs, and all attacks together
 * beside another tenant. Prints the tables of docs/reliability.md.
 */
export async function tenants(): Promise<void> {
  const tests = SIZE_NAME === 'tiny' ? TINY : ALL;
  const { SPOOL_FIGURES_FILE: _figures, SPOOL_TABLES_FOLDER: _tables, ...env } = process.env;
  if (!(await runSpecs(tests, { ...env, SPOOL_LONG: SIZE_NAME === 'tiny' ? '' : '1' })))
    throw new Error('A test failed.');
}
