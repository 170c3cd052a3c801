import { connect, createServer, type AddressInfo } from 'node:net';
import { once } from 'node:events';
import { startCountingProxy } from './counting-proxy.ts';

test('the proxy forwards and counts every byte in both directions, over all connections', async () => {
  const server = createServer((socket) => socket.on('data', (bytes) => socket.end(Buffer.concat([bytes, bytes]))));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const cleanUps: (() => Promise<void>)[] = [];
  const proxy = await startCountingProxy((server.address() as AddressInfo).port, (cleanUp) => cleanUps.push(cleanUp));
  try {
    for (const text of ['abc', 'defgh']) {
      const socket = connect(proxy.port, '127.0.0.1').setEncoding('utf8');
      let received = '';
      socket.on('data', (piece: string) => (received += piece));
      socket.write(text);
      await once(socket, 'close');
      expect(received).toBe(text + text);
    }
    expect(proxy.traffic()).toEqual({ sent: 8, received: 16 });
  } finally {
    for (const cleanUp of cleanUps) await cleanUp();
    await new Promise((resolve) => server.close(resolve));
  }
});
