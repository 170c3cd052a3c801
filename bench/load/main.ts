import { looped, type Figures, type Operation } from '../measure.ts';
import { answerParent } from '../processes.ts';
import { HttpConnection } from './http-connection.ts';
import { BASE_PATH, CREATE_EMPTY_THREAD, CREATE_THREAD, SEND_MESSAGE, type LoadOrder } from './order.ts';

answerParent(async (order: LoadOrder): Promise<Figures> => {
  const opened = new Set<HttpConnection>();
  const open = async (): Promise<HttpConnection> => {
    for (const connection of opened) if (!connection.isOpen) opened.delete(connection);
    const connection = await HttpConnection.open(order.origin);
    opened.add(connection);
    return connection;
  };
  const operations: Operation[] = [];
  while (operations.length < order.connections) operations.push(await FLOWS[order.flow](order, open));
  try {
    return await looped(
      (client) => operations[client]?.(client) ?? Promise.resolve(undefined),
      order.connections,
    )(order.forMs);
  } finally {
    for (const connection of opened) connection.close();
  }
});

type Flow = (order: LoadOrder, open: () => Promise<HttpConnection>) => Promise<Operation>;

const FLOWS: Record<LoadOrder['flow'], Flow> = {
  accept: async (order, open) => {
    const connection = await open();
    return async () => {
      await createThread(connection, order, CREATE_THREAD);
      return undefined;
    };
  },

  /** From the POST to the `run.completed` frame; the loop goes on when the stream has ended. */
  'round-trip': async (order, open) => {
    const connection = await open();
    let stream = await open();
    return async () => {
      const start = performance.now();
      const threadId = await createThread(connection, order, CREATE_THREAD);
      let completedAt = NaN;
      const onPiece = watchFor('"type":"run.completed"', () => (completedAt = performance.now()));
      const path = `${BASE_PATH}/threads/${threadId}/events/stream?until=idle`;
      if (!stream.isOpen) stream = await open();
      await stream.send('GET', path, { headers: authorization(order), onPiece });
      if (Number.isNaN(completedAt)) throw new Error(`the stream of ${threadId} ended without run.completed`);
      return completedAt - start;
    };
  },

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
    // Ends when the round does, by closing the connection.
    void stream
      .send('GET', `${BASE_PATH}/threads/${threadId}/events/stream`, { headers: authorization(order), onPiece })
      .catch(ignore);
    return async () => {
      const start = performance.now();
      const seenStarted = new Promise<number>((resolve) => (onStarted = () => resolve(performance.now())));
      const seenIdle = new Promise<void>((resolve) => (onIdle = resolve));
      await post(connection, `/threads/${threadId}/events`, { headers: authorization(order), body: SEND_MESSAGE }, 200);
      const startedAt = await seenStarted;
      await seenIdle;
      return startedAt - start;
    };
  },
};

const ignore = (): void => undefined;
const authorization = ({ token }: LoadOrder): string[] => [`Authorization: Bearer ${token}`];
const keyPrefix = `${process.pid}-${Date.now()}-`;
let keys = 0;

async function createThread(connection: HttpConnection, order: LoadOrder, body: string): Promise<string> {
  const headers = [...authorization(order), ...(order.keyed ? [`Idempotency-Key: ${keyPrefix}${++keys}`] : [])];
  const created = await post(connection, `/agents/${order.agentId}/threads`, { headers, body }, 201);
  const [, id] = /"id":"([^"]+)"/.exec(created) ?? [];
  if (id === undefined) throw new Error(`no thread id in ${created}`);
  return id;
}

async function post(
  connection: HttpConnection,
  path: string,
  request: { headers: string[]; body: string },
  wanted: number,
): Promise<string> {
  const { status, body } = await connection.send('POST', BASE_PATH + path, request);
  if (status !== wanted) throw new Error(`${path} was answered by ${status}: ${body}`);
  return body;
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
