import type { Server } from 'node:http';
import type { Socket } from 'node:net';

/**
 * The connections without a request so far; browsers open some in advance. `server.close()` closes idle keep-alive sockets,
 * but waits for sockets that never sent a request.
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

  /** Closes them, except those on which a first request has begun to arrive. */
  end(): void {
    for (const socket of this.sockets) if (socket.bytesRead === 0) socket.destroy();
  }
}
