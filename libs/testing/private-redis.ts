import { spawnSync } from 'node:child_process';
import { tmpdir } from 'node:os';
import { Redis } from 'ioredis';
import { findFreePort } from '../platform/index.ts';
import { eventually } from './eventually.ts';
import { spawnGuarded, type GuardedProcess } from './guarded-process.ts';
import { trackRunning } from './running.ts';

/** A redis-server of the caller's own, to be broken. It keeps nothing on disk: restarted, it is empty. */
export interface PrivateRedis {
  url: string;
  port: number;
  flushAll(): Promise<void>;
  /** SIGSTOP: connections stay open and nobody answers. */
  pause(): void;
  /** SIGCONT. */
  resume(): void;
  /** SIGKILL. */
  kill(): Promise<void>;
  /** After `kill()`: on the same port. */
  start(): Promise<void>;
  /** For good. */
  stop(): Promise<void>;
}

let isInstalled: boolean | undefined;

export function isRedisServerInstalled(): boolean {
  return (isInstalled ??= spawnSync('redis-server', ['--version']).status === 0);
}

export async function startPrivateRedis(): Promise<PrivateRedis> {
  const port = await findFreePort();
  const url = `redis://127.0.0.1:${port}`;
  let server: GuardedProcess | undefined;
  const kill = async (): Promise<void> => {
    await server?.end();
    server = undefined;
  };
  const untrack = trackRunning({ what: `redis-server on port ${port}`, end: () => void kill() });

  const redis: PrivateRedis = {
    url,
    port,
    flushAll: () => ask(url, async (client) => void (await client.flushall())),
    pause: () => server?.signal('SIGSTOP'),
    resume: () => server?.signal('SIGCONT'),
    kill,
    start: async () => {
      server = await spawnGuarded('redis-server', flagsFor(port));
      const answers = (): Promise<boolean> => ask(url, async (client) => (await client.ping()) === 'PONG');
      await eventually(answers, { what: `redis-server answers on port ${port}` });
    },
    stop: async () => {
      await kill();
      untrack();
    },
  };
  await redis.start();
  return redis;
}

const flagsFor = (port: number): string[] => [
  ...['--port', `${port}`, '--bind', '127.0.0.1'],
  ...['--save', '', '--appendonly', 'no', '--dir', tmpdir()],
  ...['--maxmemory-policy', 'noeviction'], // what BullMQ demands of any Redis
];

async function ask<T>(url: string, question: (client: Redis) => Promise<T>): Promise<T> {
  const client = new Redis(url, { lazyConnect: true, retryStrategy: null, maxRetriesPerRequest: 0 });
  client.on('error', () => undefined); // told by the rejected question
  await client.connect(); // failing, it has ended: no retries
  try {
    return await question(client);
  } finally {
    client.disconnect();
  }
}
