import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import type { Defer } from '../clean-up.ts';
import type { Traffic } from './count-result.ts';

export interface CountingProxy {
  port: number;
  /** The bytes that passed so far, as the clients see them. */
  traffic(): Traffic;
}

/** Starts a TCP proxy to a server on this machine that counts every byte of payload. */
export async function startCountingProxy(targetPort: number, defer: Defer): Promise<CountingProxy> {
  const traffic: Traffic = { sent: 0, received: 0 };
  const sockets = new Set<Socket>();
  const forward = (from: Socket, to: Socket, direction: keyof Traffic): void => {
    sockets.add(from);
    from.setNoDelay(true);
    from.on('data', (bytes) => (traffic[direction] += bytes.length));
    from.on('error', () => to.destroy());
    from.on('close', () => sockets.delete(from));
    from.pipe(to);
  };
  const server = createServer((client) => {
    const target = connect(targetPort, '127.0.0.1');
    forward(client, target, 'sent');
    forward(target, client, 'received');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  defer(async () => {
    const closed = new Promise((resolve) => server.close(resolve));
    for (const socket of sockets) socket.destroy();
    await closed;
  });
  return { port: (server.address() as AddressInfo).port, traffic: () => ({ ...traffic }) };
}
