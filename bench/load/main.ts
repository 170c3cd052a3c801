import { looped, repeated, type Operation } from '../measure.ts';
import { answerParent } from '../processes.ts';
import { HttpConnection } from './http-connection.ts';
import {
  BASE_PATH,
  CREATE_EMPTY_THREAD,
  CREATE_SLOW_THREAD,
  CREATE_THREAD,
  SEND_MESSAGE,
  type LoadAnswer,
  type LoadOrder,
} from './order.ts';

/** How much longer than planned a round may take before it fails. Prevents a lost Run from blocking a benchmark. */
const GRACE_MS = 30_000;
/** The planned time for each operation of a round with a fixed number of operations. */
const SLOWEST_MS = 100;

/** The order of one client, with its own token. */
interface ClientOrder extends LoadOrder {
  token: string;
}

answerParent(async (order: LoadOrder): Promise<LoadAnswer> => {
  const opened = new Set<HttpConnection>();
  const bytes = { sent: 0, received: 0 };
  const close = (connection: HttpConnection): void => {
    bytes.sent += connection.bytes.sent;
    bytes.received += connection.bytes.received;
    connection.close();
    opened.delete(connection);
  };
  const open = async (): Promise<HttpConnection> => {
    for (const connection of opened) if (!connection.isOpen) close(connection);
    const connection = await HttpConnection.open(order.origin);
    opened.add(connection);
    return connection;
  };
  try {
    const operations: Operation[] = [];
    while (operations.length < order.connections) {
      const token = order.tokens[operations.length % order.tokens.length] ?? '';
      operations.push(await FLOWS[order.flow]({ ...order, token }, open));
    }
    const operation: Operation = (client) => operations[client]?.(client) ?? Promise.resolve(undefined);
    const { flow, connections, until } = order;
    const timed = 'ms' in until;
    const round = timed ? looped(operation, connections)(until.ms) : repeated(operation, connections, until.operations);
    const plannedMs = timed ? until.ms : until.operations * SLOWEST_MS;
    const figures = await within(round, plannedMs + GRACE_MS, `a round of ${flow}`);
    for (const connection of opened) close(connection);
    return { figures, bytes };
  } finally {
    for (const connection of opened) connection.close();
  }
});

/** Rejects if the work takes longer than `ms`. */
async function within<T>(work: Promise<T>, ms: number, what: string): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what} did not end within ${ms} ms`)), ms);
  });
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
}

type Flow = (order: ClientOrder, open: () => Promise<HttpConnection>) => Promise<Operation>;

const FLOWS: Record<LoadOrder['flow'], Flow> = {
  accept: async (order, open) => {
    const connection = await open();
    return async () => {
      await createThread(connection, order, CREATE_THREAD);
      return undefined;
    };
  },

  /** The newest Threads of the caller. */
  list: async (order, open) => {
    const connection = await open();
    return async () => {
      await connection.send('GET', `${BASE_PATH}/threads`, { headers: authorization(order), expect: 200 });
      return undefined;
    };
  },
  /** From the POST to the `run.completed` frame; the loop goes on when the stream has ended. */
  'round-trip': (order, open) => untilFrame('run.completed', order, open, CREATE_THREAD),

  /** Measures from the POST to the first frame with text of the answer. The loop continues after the end of the stream. */
  'first-text': (order, open) => untilFrame('agent.message.delta', order, open, CREATE_SLOW_THREAD),

  /** On one Thread, whose stream stays open: from the POST of a message to the `run.started` frame. */
  'run-started': async (order, open) => {
    const [connection, stream] = [await open(), await open()];
    const threadId = await createThread(connection, order, CREATE_EMPTY_THREAD);
    let onStarted = (): void => undefined;
    let onIdle = (): void => undefined;
    const started = watchFor('"type":"run.started"', () => onStarted());
    const idle = watchFor('"content":"IDLE"', () => onIdle());
    const onPiece = (text: string): void => {
      started(text);
      idle(text);
    };
    const path = `${BASE_PATH}/threads/${threadId}/events/stream`;
    // Only a failure settles this promise: at the end of the round the connection is closed.
    const broken = stream.send('GET', path, { headers: authorization(order), expect: 200, onPiece }).then((): never => {
      throw new Error(`the stream of ${threadId} ended early`);
    });
    broken.catch(() => undefined); // reported by the next operation
    return async () => {
      const start = performance.now();
      const seenStarted = new Promise<number>((resolve) => (onStarted = () => resolve(performance.now())));
      const seenIdle = new Promise<void>((resolve) => (onIdle = resolve));
      await post(connection, `/threads/${threadId}/events`, order, { body: SEND_MESSAGE, expect: 200 });
      const startedAt = await Promise.race([seenStarted, broken]);
      await Promise.race([seenIdle, broken]);
      return startedAt - start;
    };
  },
};

/** Measures from the POST of a new Thread to the first frame of this type in its stream. */
async function untilFrame(
  type: string,
  order: ClientOrder,
  open: () => Promise<HttpConnection>,
  body: string,
): Promise<Operation> {
  const connection = await open();
  let stream = await open();
  return async () => {
    const start = performance.now();
    const threadId = await createThread(connection, order, body);
    let seenAt = NaN;
    const onPiece = watchFor(`"type":"${type}"`, () => {
      if (Number.isNaN(seenAt)) seenAt = performance.now();
    });
    const path = `${BASE_PATH}/threads/${threadId}/events/stream?until=idle`;
    if (!stream.isOpen) stream = await open();
    await stream.send('GET', path, { headers: authorization(order), expect: 200, onPiece });
    if (Number.isNaN(seenAt)) throw new Error(`the stream of ${threadId} ended without ${type}`);
    return seenAt - start;
  };
}

const authorization = ({ token }: ClientOrder): string[] => [`Authorization: Bearer ${token}`];
const keyPrefix = `${process.pid}-${Date.now()}-`;
let keys = 0;

async function createThread(connection: HttpConnection, order: ClientOrder, body: string): Promise<string> {
  const headers = order.keyed ? [`Idempotency-Key: ${keyPrefix}${++keys}`] : [];
  const created = await post(connection, `/agents/${order.agentId}/threads`, order, { headers, body, expect: 201 });
  const [, id] = /"id":"([^"]+)"/.exec(created) ?? [];
  if (id === undefined) throw new Error(`no thread id in ${created.slice(0, 300)}`);
  return id;
}

function post(
  connection: HttpConnection,
  path: string,
  order: ClientOrder,
  { headers = [], ...request }: { headers?: string[]; body: string; expect: number },
): Promise<string> {
  return connection.send('POST', BASE_PATH + path, { headers: [...authorization(order), ...headers], ...request });
}

/** Calls back when the text has come, even if in two pieces; once each time it comes. */
function watchFor(text: string, found: () => void): (piece: string) => void {
  let tail = '';
  return (piece) => {
    const all = tail + piece;
    let at = all.indexOf(text);
    let from = 0;
    for (; at !== -1; at = all.indexOf(text, from)) {
      from = at + text.length;
      found();
    }
    tail = all.slice(Math.max(from, all.length - text.length + 1));
  };
}
