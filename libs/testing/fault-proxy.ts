import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { trackRunning } from './running.ts';

/** A TCP proxy to a server on this machine that breaks connections in the ways networks do. */
export interface FaultProxy {
  /** Connect here instead of to the target. */
  port: number;
  /** The same URL, through the proxy. */
  through(url: string): string;
  connectionCount(): number;
  /** Of how many of them the first bytes of an answer have passed. */
  answeredCount(): number;
  /** Closes all connections, and new ones at once, until `resume()`. */
  cut(): void;
  /** Connections stay and new ones open, but no byte passes, until `resume()` lets all of them pass. */
  stall(): void;
  /** Half-open: the connections of now stay, and no byte passes on them ever again; new ones work. */
  abandon(): void;
  resume(): void;
  /** Resets all connections (RST); new ones work. */
  reset(): void;
  /**
   * Lets the next request that matches through and ends its connection before the answer gets back. Resolves when the
   * server has begun to answer, and so has done what was asked, as far as a client can ever know.
   */
  dropNextAnswer(matches?: (request: Buffer) => boolean): Promise<void>;
  /** Ends the connection whose answer is the next to contain the text, just before the text. Resolves then. */
  endBefore(text: string): Promise<void>;
  close(): Promise<void>;
}

interface Pair {
  client: Socket;
  target: Socket;
  isAnswered: boolean;
  answerDropped?: () => void;
}

interface Drop {
  matches: (request: Buffer) => boolean;
  dropped: () => void;
}

interface End {
  text: string;
  ended: () => void;
}

/** Faults that wait for the bytes that they apply to. */
interface Faults {
  drops: Drop[];
  ends: End[];
}

export async function faultProxy(targetPort: number): Promise<FaultProxy> {
  const pairs = new Set<Pair>();
  // One socket of a pair may outlive the other: a paused one does not see its end.
  const sockets = new Set<Socket>();
  const abandoned = new Set<Socket>();
  const drops: Drop[] = [];
  const ends: End[] = [];
  let state: 'open' | 'cut' | 'stalled' = 'open';

  const server = createServer((client) => {
    if (state === 'cut') return void client.destroy();
    const pair: Pair = { client, target: connect(targetPort, '127.0.0.1'), isAnswered: false };
    pairs.add(pair);
    const isSilent = (): boolean => state === 'stalled' || abandoned.has(client);
    connectPair(pair, { drops, ends }, isSilent, () => pairs.delete(pair));
    for (const socket of [pair.client, pair.target]) {
      sockets.add(socket.once('close', () => sockets.delete(socket)));
      if (state === 'stalled') socket.pause();
    }
  });
  const port = await listen(server);
  const endAll = (): void => sockets.forEach((socket) => socket.destroy());
  const untrack = trackRunning({
    what: `fault proxy to port ${targetPort}`,
    end: () => {
      server.close();
      endAll();
    },
  });

  return {
    port,
    through: (url) => withPort(url, port),
    connectionCount: () => pairs.size,
    answeredCount: () => [...pairs].filter(({ isAnswered }) => isAnswered).length,
    cut: () => {
      state = 'cut';
      endAll();
    },
    stall: () => {
      state = 'stalled';
      sockets.forEach((socket) => socket.pause());
    },
    abandon: () => {
      for (const socket of sockets) abandoned.add(socket.pause().once('close', () => abandoned.delete(socket)));
    },
    resume: () => {
      state = 'open';
      for (const socket of sockets) if (!abandoned.has(socket)) socket.resume();
    },
    reset: () => sockets.forEach((socket) => socket.resetAndDestroy()),
    dropNextAnswer: (matches = () => true) => new Promise((resolve) => drops.push({ matches, dropped: resolve })),
    endBefore: (text) => new Promise((resolve) => ends.push({ text, ended: resolve })),
    close: async () => {
      // Who was just being accepted comes after this.
      state = 'cut';
      const closed = new Promise((resolve) => server.close(resolve));
      endAll();
      await closed;
      untrack();
    },
  };
}

function connectPair(pair: Pair, { drops, ends }: Faults, isStalled: () => boolean, ended: () => void): void {
  const { client, target } = pair;
  const forward = (bytes: Buffer, from: Socket, to: Socket): void => {
    if (to.destroyed || to.write(bytes)) return;
    from.pause(); // a reader that does not read must be felt by the writer, as without us
    to.once('drain', () => {
      if (!isStalled()) from.resume();
    });
  };
  client.on('data', (request) => {
    forward(request, client, target);
    const index = drops.findIndex(({ matches }) => matches(request));
    if (index >= 0) pair.answerDropped = drops.splice(index, 1)[0]!.dropped;
  });
  target.on('data', (answer) => {
    const index = ends.findIndex(({ text }) => answer.includes(text));
    if (index >= 0) {
      const end = ends.splice(index, 1)[0]!;
      client.end(answer.subarray(0, answer.indexOf(end.text)), end.ended);
      return void target.destroy();
    }
    if (!pair.answerDropped) {
      forward(answer, target, client);
      pair.isAnswered = true;
      return;
    }
    pair.answerDropped();
    client.destroy();
    target.end(); // FIN, not RST: what the server is still doing for this request, it finishes
  });
  const endWith = (socket: Socket, other: Socket): void => {
    socket.on('error', () => undefined); // told by 'close'
    socket.on('close', () => {
      ended();
      other.end();
      if (!isStalled()) other.resume(); // it may wait for the drain of the one that is gone
    });
  };
  endWith(client, target);
  endWith(target, client);
}

function withPort(url: string, port: number): string {
  const changed = new URL(url);
  changed.host = `127.0.0.1:${port}`;
  return changed.href;
}

function listen(server: Server): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port));
  });
}
