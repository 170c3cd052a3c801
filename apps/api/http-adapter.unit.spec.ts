import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { configSchema, createLogger } from '#platform';
import { createHttpAdapter } from './http-adapter.ts';

const LIMITS_PAGE = join(import.meta.dirname, '../../docs/api/limits.md');

it('limits the time for a request to arrive to the value in docs/api/limits.md', () => {
  const adapter = createHttpAdapter(configSchema.parse({}), createLogger('silent', 'test'));
  const minutes = adapter.getInstance().server.requestTimeout / 60_000;
  expect(readFileSync(LIMITS_PAGE, 'utf8')).toContain(`| Time for a whole request to arrive | ${minutes} min | 408 |`);
});
