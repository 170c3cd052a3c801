import type { Server } from 'node:http';
import type { Socket } from 'node:net';

/**
 * Connections on which nothing was asked yet: browsers and other clients open some ahead. At the end of a server Node hangs up
 * on those that were used and are idle, and waits for these, for as long as it may.
 */
export class UnusedConnections {
  private readonly sockets = new Set<Socket>();

  constructor(server: Server) {
    server.on('connection', (socket) => {
      this.sockets.add(socket);
      socket.once('close', () => this.sockets.delete(socket));
    });
    server.on('request', ({ socket }) => this.sockets.delete(socket));
  }

  /** Hangs up on them, but not where a first request has begun to arrive. */
  end(): void {
    for (const socket of this.sockets) if (socket.bytesRead === 0) socket.destroy();
  }
}
