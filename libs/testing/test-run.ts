import { randomBytes } from 'node:crypto';

/**
 * One `jest` invocation. Its id is in the name of everything it makes on shared servers, so that two runs never meet
 * and what a killed run left can be told apart.
 */
export interface TestRun {
  id: string;
  /** Any database of the server that the run's databases are made on. */
  databaseUrl: string;
  redisUrl: string | undefined;
}

/** Environment, because Jest's workers are processes of their own. */
const variable = 'SPOOL_TEST_RUN';

export const newRunId = (): string => `${Date.now().toString(36)}${randomBytes(3).toString('hex')}`;

/** When the run began, from its id. */
export const runStartedAt = (id: string): number => parseInt(id.slice(0, -6), 36);

export function publishRun(run: TestRun): void {
  process.env[variable] = JSON.stringify(run);
}

export function currentRun(): TestRun {
  const published = process.env[variable];
  if (!published) throw new Error('Not inside a Jest run with libs/testing/global-setup.ts (projects int and e2e)');
  return JSON.parse(published) as TestRun;
}
