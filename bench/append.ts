import pg from 'pg';
import { absentThread, CommandHandler, ThreadStore } from '#event-store';
import { openDatabase } from '#platform';
import type { Bench } from './bench.ts';
import { withCleanUp, type Defer } from './clean-up.ts';
import { factsOfCreation, DELTAS, startRun } from './floor/plain-facts.ts';
import { newPlainId, PLAIN_SCHEMA, PlainStore, SESSION_SETTINGS } from './floor/plain-store.ts';
import { TEXT } from './load/order.ts';
import { looped, type Side } from './measure.ts';
import {
  appendDeltas,
  createWithMessage,
  handled,
  LEASE_MS,
  newId,
  recordingStore,
  startThread,
  type Statement,
} from './threads.ts';

const CLIENTS = [1, 8, 32];
const EVENTS = 3;

/** Appends once for one client: for Spool, or for the own floor, whose handler only records. */
type Appender = (handler: CommandHandler) => Promise<void>;

/** One kind of stream to append to. */
interface Stream {
  name: string;
  /** The lowest ratio to the own floor, by the number of clients. */
  goals: Record<number, number>;
  /** Prepares the appends of one client of Spool. */
  appender: (handler: CommandHandler) => Promise<Appender>;
  /** Prepares the appends of one client of the independent floor. */
  plain: (store: PlainStore) => Promise<() => Promise<void>>;
}

/** Compares CommandHandler.handle with the same statements sent by hand, and with plain tables. */
export async function append(bench: Bench): Promise<void> {
  const fresh = { name: 'new', goals: { 1: 0.9, 8: 0.8, 32: 1.5 }, appender: newStream, plain: newPlain };
  const hot = { name: 'hot', goals: { 1: 0.9, 8: 0.8, 32: 1.4 }, appender: hotStream, plain: hotPlain };
  for (const clients of CLIENTS) await appendTo(fresh, bench, clients);
  for (const clients of CLIENTS) await appendTo(hot, bench, clients);
}

async function newPlain(store: PlainStore): Promise<() => Promise<void>> {
  return () => store.create(newPlainId(), newPlainId(), factsOfCreation(TEXT));
}

async function hotPlain(store: PlainStore): Promise<() => Promise<void>> {
  const [threadId, runId] = [newPlainId(), newPlainId()];
  await store.create(threadId, runId, factsOfCreation(TEXT));
  const run = await startRun(store, threadId, runId);
  return () => store.append(run, DELTAS);
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
  return (appender) => appendDeltas(appender, hot, EVENTS);
}

function appendTo(stream: Stream, { services, compare }: Bench, clients: number): Promise<void> {
  return withCleanUp(async (defer) => {
    const url = await services.newDatabase(defer);
    const database = await openDatabase({ url, applicationName: 'bench', maxConnections: clients });
    defer(() => database.close());
    const handler = new CommandHandler({ store: new ThreadStore(database.pool), leaseMs: LEASE_MS });
    const appenders = await each(clients, () => stream.appender(handler));
    const subject = looped(async (client) => {
      await appenders[client]?.(handler);
      return undefined;
    }, clients);
    await services.asOwner(url, `${PLAIN_SCHEMA}; ${GRANTS}`);
    const connections = await each(clients, () => connectTo(url, defer));
    const own = ownFloor(connections, await each(clients, () => stream.appender(handler)));
    const plain: (() => Promise<void>)[] = [];
    for (const connection of connections) plain.push(await stream.plain(new PlainStore(connection)));
    const independent = looped(async (client) => {
      await plain[client]?.();
      return undefined;
    }, clients);
    await compare({
      ...{ name: `append to a ${stream.name} stream`, clients, by: 'perSecond' },
      target: { atLeast: stream.goals[clients] ?? 0 },
      ...{ subject, floors: { own, independent } },
    });
  });
}

/** The connections of the floors have the role of Spool's processes. */
const GRANTS = `
  grant usage on schema plain to public;
  grant select, insert, update, delete on all tables in schema plain to public`;

/** Opens one connection of the floors. Both share it, because 32 clients with a third set would need all of a server's connections. */
async function connectTo(url: string, defer: Defer): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url, options: SESSION_SETTINGS });
  await client.connect();
  defer(() => client.end());
  return client;
}

/** The rate that the first round is prepared for, statements a second. */
const FIRST_GUESS = 20_000;

/**
 * The own floor. Each client has its own connection and sends statements that were recorded before the round. Spool's code
 * makes them, so they have the same name, text and parameters.
 */
function ownFloor(clients: pg.Client[], appenders: Appender[]): Side {
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
