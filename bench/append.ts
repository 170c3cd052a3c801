import pg from 'pg';
import { absentThread, CommandHandler, ThreadStore } from '#event-store';
import { openDatabase } from '#platform';
import type { Bench } from './bench.ts';
import { withCleanUp, type Defer } from './clean-up.ts';
import { looped, type Side } from './measure.ts';
import {
  appendPieces,
  createWithMessage,
  handled,
  LEASE_MS,
  newId,
  recordingStore,
  startThread,
  type Statement,
} from './threads.ts';

const TARGET = { atLeast: 0.8 };
const CLIENTS = [1, 8, 32];
const EVENTS = 3;

/** What one client appends next; the same for Spool and for the floor, whose handler only records. */
type Appender = (handler: CommandHandler) => Promise<void>;

/** CommandHandler.handle beside the same statements sent by hand. */
export async function append(bench: Bench): Promise<void> {
  for (const clients of CLIENTS) await appendTo('new', newStream, bench, clients);
  for (const clients of CLIENTS) await appendTo('hot', hotStream, bench, clients);
}

/** As the API does: a POST with input. */
async function newStream(): Promise<Appender> {
  return async (handler) => {
    const threadId = newId();
    await handled(handler, { threadId, commands: createWithMessage(newId()), from: absentThread(threadId) });
  };
}

/** As a worker does: its own Thread, whose state it knows. */
async function hotStream(handler: CommandHandler): Promise<Appender> {
  const hot = await startThread(handler);
  return (appender) => appendPieces(appender, hot, EVENTS);
}

function appendTo(
  stream: string,
  newAppender: (handler: CommandHandler) => Promise<Appender>,
  { services, compare }: Bench,
  clients: number,
): Promise<void> {
  return withCleanUp(async (defer) => {
    const url = await services.newDatabase(defer);
    const database = await openDatabase({ url, applicationName: 'bench', maxConnections: clients });
    defer(() => database.close());
    const handler = new CommandHandler({ store: new ThreadStore(database.pool), leaseMs: LEASE_MS });
    const appenders = await each(clients, () => newAppender(handler));
    const subject = looped(async (client) => {
      await appenders[client]?.(handler);
      return undefined;
    }, clients);
    const floor = await openFloor(url, await each(clients, () => newAppender(handler)), defer);
    const name = `append to a ${stream} stream`;
    await compare({ name, clients, by: 'perSecond', subject, floor, target: TARGET });
  });
}

/** The rate that the first round is prepared for, statements a second. */
const FIRST_GUESS = 20_000;

/**
 * The floor: each client has its own connection and sends statements that were made before the round began, by the same
 * code as the subject's, so that they have the same name, text and parameters.
 */
async function openFloor(url: string, appenders: Appender[], defer: Defer): Promise<Side> {
  const clients = await each(appenders.length, async () => {
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    defer(() => client.end());
    return client;
  });
  let prepared = appenders.map((): IterableIterator<Statement> => [].values());
  let guess = FIRST_GUESS;
  const send = looped(async (client) => {
    const statement = prepared[client]?.next().value as Statement | undefined;
    if (statement === undefined) throw new Error('too few statements were prepared for the floor');
    const { rows } = (await clients[client]?.query<{ appended: boolean }>(statement)) ?? {};
    if (rows?.[0]?.appended !== true) throw new Error('the floor did not append');
    return undefined;
  }, appenders.length);
  return async (forMs) => {
    const wanted = Math.ceil((guess * forMs) / 1_000 / appenders.length) + 100;
    for (const [i, append] of appenders.entries()) {
      const statements = await record(append, [...(prepared[i] ?? [])], wanted);
      prepared = prepared.with(i, statements.values());
    }
    const figures = await send(forMs);
    guess = 2 * figures.perSecond;
    return figures;
  };
}

/** The statements that were left, and as many more as are wanted. */
async function record(append: Appender, left: Statement[], wanted: number): Promise<Statement[]> {
  const { store, statements } = recordingStore();
  const handler = new CommandHandler({ store, leaseMs: LEASE_MS });
  while (left.length + statements.length < wanted) await append(handler);
  return [...left, ...statements];
}

async function each<T>(count: number, make: () => Promise<T>): Promise<T[]> {
  const made: T[] = [];
  for (let i = 0; i < count; i++) made.push(await make());
  return made;
}
