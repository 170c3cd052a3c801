import { connect } from 'node:net';
import { eventually } from '#testing';
import { ApiUnderTest } from './api-under-test.testing.ts';

// Otherwise the server would wait for the keep-alive time, which is longer than the timeout of a test.
it('stops after a request in progress, although its client keeps the connection open', async () => {
  const api = await ApiUnderTest.start();
  const socket = connect(Number(new URL(api.url).port), '127.0.0.1');
  let answer = '';
  socket.setEncoding('utf8').on('data', (data: string) => (answer += data));
  try {
    socket.write('POST /api/v1/agents/x/threads HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n');
    // The server reads bytes in the order of arrival. When it answers this request, it has read those above.
    await fetch(api.url);
    const stopped = api.stop();
    const isRefused = () =>
      fetch(api.url).then(
        () => false,
        () => true,
      );
    await eventually(isRefused, { what: 'new connections are refused' });
    socket.write('Content-Type: application/json\r\n\r\n{}');
    await stopped;
    expect(answer).toMatch(/^HTTP\/1\.1 401 /);
  } finally {
    socket.destroy();
  }
});
