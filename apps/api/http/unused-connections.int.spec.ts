import { once } from 'node:events';
import { connect } from 'node:net';
import { ApiUnderTest } from '../api-under-test.testing.ts';

it('shutdown does not wait for connections that were never used', async () => {
  const api = await ApiUnderTest.start();
  const { port, hostname } = new URL(api.url);
  const unused = connect(Number(port), hostname);
  try {
    await once(unused, 'connect');
    // This request uses another connection. After its answer, the server has seen both.
    expect((await api.get('/openapi.json', { token: null })).status).toBe(200);
    const ended = once(unused, 'close');
    await api.stop();
    await ended;
  } finally {
    unused.destroy();
  }
}, 30_000);
