import { configSchema, createLogger } from '#platform';
import { createHttpAdapter } from './http-adapter.ts';

it.each([
  ['by default', {}, { requestTimeout: 300_000, headersTimeout: 10_000 }],
  ['by settings', { REQUEST_TIMEOUT_MS: '5000' }, { requestTimeout: 5_000, headersTimeout: 5_000 }],
])('limits the time for a request to arrive, %s', (_, settings, expected) => {
  const adapter = createHttpAdapter(configSchema.parse(settings), createLogger('silent', 'test'));
  expect(adapter.getInstance().server).toMatchObject(expected);
});
