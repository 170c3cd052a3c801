import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CommandHandler, ThreadStore } from '#event-store';
import { openDatabase, startEmbeddedPostgres } from '#platform';
import { migrateInstallation } from '#run-queue';
import type { Bench } from './bench.ts';
import { withCleanUp, type Defer } from './clean-up.ts';
import { looped, type Side } from './measure.ts';
import { appendDeltas, LEASE_MS, startThread } from './threads.ts';

const CLIENTS = [1, 32];
const EVENTS = 3;

/** Compares appends to hot streams over a Unix socket with the same over TCP, on one embedded PostgreSQL. */
export function sockets({ compare }: Bench): Promise<void> {
  return withCleanUp(async (defer) => {
    const directory = await mkdtemp(join(tmpdir(), 'spool-sockets-'));
    const log = (message: string) => void process.stderr.write(`${message}\n`);
    const server = await startEmbeddedPostgres({ dataDir: directory, log });
    defer(async () => {
      await server.stop();
      for (const left of [server.dataDir, directory]) await rm(left, { recursive: true, force: true });
    });
    if (server.socketUrl === null)
      throw new Error(`No Unix socket: ${server.dataDir} is too long or has special characters.`);
    await migrateInstallation({ ownerUrl: server.ownerUrl, appUrl: server.url, queueUrl: undefined });
    for (const clients of CLIENTS) {
      const subject = await appends(server.socketUrl, clients, defer);
      const own = await appends(server.url, clients, defer);
      await compare({
        name: 'append over a Unix socket, beside TCP',
        clients,
        by: 'perSecond',
        subject,
        floors: { own },
      });
    }
  });
}

async function appends(url: string, clients: number, defer: Defer): Promise<Side> {
  const database = await openDatabase({ url, applicationName: 'bench', maxConnections: clients });
  defer(() => database.close());
  const handler = new CommandHandler({ store: new ThreadStore(database.pool), leaseMs: LEASE_MS });
  const streams = await Promise.all(Array.from({ length: clients }, () => startThread(handler)));
  return looped(async (client) => {
    await appendDeltas(handler, streams[client]!, EVENTS);
    return undefined;
  }, clients);
}
