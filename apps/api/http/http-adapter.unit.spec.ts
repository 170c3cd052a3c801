import { configSchema, createLogger } from '#platform';
import { createHttpAdapter, REQUEST_TIMEOUT_MS } from './http-adapter.ts';

it('limits the time for a request to arrive', () => {
  const adapter = createHttpAdapter(configSchema.parse({}), createLogger('silent', 'test'));
  expect(adapter.getInstance().server.requestTimeout).toBe(REQUEST_TIMEOUT_MS);
});
